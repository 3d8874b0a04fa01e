"""A linear layer's product with bias and GELU in one call."""
