"""Views that belong to no single room."""
