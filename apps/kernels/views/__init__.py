"""Views of the kernels app."""
