"""The Triton backend without a GPU: record launches as data, compile them in a clean process, interpret on CPU."""
