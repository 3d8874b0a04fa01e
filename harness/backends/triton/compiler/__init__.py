"""Turns IR text into resources in a disposable process that never sees the candidate."""
