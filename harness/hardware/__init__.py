"""The machine: what it is, which cores belong to the clock, and how fast it can be at all."""
