"""What the sandbox server forks into: the child loops of the modes ``triton-plan`` and ``triton-interpret``."""
