"""Derives a plan's IR again from the reviewed file's kernel functions alone, in a sandbox that sees no host code."""
