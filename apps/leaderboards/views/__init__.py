"""Views of the leaderboards app."""
