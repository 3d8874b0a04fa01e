"""Attacks on the sandbox as data: what each does, which cheats of which group it stands for, where it may succeed."""
