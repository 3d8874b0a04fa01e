"""The parity run: once, natively on the GPU, in a disposable process, to see that a plan is what the file launches."""
