"""Views of the imports app."""
