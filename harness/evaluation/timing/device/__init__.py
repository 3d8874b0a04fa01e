"""The clock of GPU kernels: launcher rounds of paired samples, drawn and verified by the judge, checked by its own."""
