"""Judging a Triton candidate on the device: plans from the sandbox, binaries from the compiler, calls by a launcher."""
