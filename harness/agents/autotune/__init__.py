"""Classical autotuning (R24): declared values alone, per shape bucket, as an agent and as a bulk search."""
