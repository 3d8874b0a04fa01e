"""Records what a candidate would launch. Runs in the sandbox only: it shares a process with candidate code."""
