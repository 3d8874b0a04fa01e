"""Operator add_rms_norm: declaration, implementation, baselines and wrong kernels."""
