"""Operator decode_attention: declaration, implementation, baselines and wrong kernels."""
