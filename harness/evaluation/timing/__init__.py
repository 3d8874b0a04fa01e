"""The clock of CPU kernels: pinned, process-repeated, paired, judged from outside; and the comparison of samples."""
