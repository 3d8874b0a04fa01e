"""Library peers as reference lines: measured beside our kernels, in a process of their own, by the same rules.

Importing this package loads no torch.
"""
