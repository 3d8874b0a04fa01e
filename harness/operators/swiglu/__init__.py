"""Operator swiglu: declaration, implementation, baselines and wrong kernels."""
