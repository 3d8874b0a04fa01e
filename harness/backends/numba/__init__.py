"""Numba kernels for the CPU: compiled and called in the sandbox, the worker is the device."""
