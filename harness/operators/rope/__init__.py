"""Operator rope: declaration, implementation, baselines and wrong kernels."""
