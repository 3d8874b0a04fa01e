"""Operator softmax: declaration, implementation, baselines and wrong kernels."""
