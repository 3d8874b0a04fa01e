"""Commands of the imports app."""
