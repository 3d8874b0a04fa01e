"""Views of the reviews app."""
