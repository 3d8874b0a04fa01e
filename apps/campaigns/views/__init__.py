"""Views of the campaigns app."""
