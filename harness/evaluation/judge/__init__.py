"""The judge: secret inputs, float64 references, bounds, probes. It never imports candidate code."""
