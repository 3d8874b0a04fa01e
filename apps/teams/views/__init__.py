"""Views of the teams app."""
