"""Operator topk: declaration, implementation, baselines and wrong kernels."""
