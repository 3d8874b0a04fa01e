"""Operator layer_norm: declaration, implementation, baselines and wrong kernels."""
