"""Operator cross_entropy: declaration, implementation, baselines and wrong kernels."""
