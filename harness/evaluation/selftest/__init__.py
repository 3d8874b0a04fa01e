"""The evaluator's self-test: known cheats and wrong kernels must be refused, honest look-alikes accepted."""
