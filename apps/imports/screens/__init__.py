"""Screens of the imports app: documents to rows, pure."""
