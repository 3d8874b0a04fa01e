"""Text of unknown origin, made fit to be stored and shown."""

from __future__ import annotations


def plain_text(text: str, kept: int = 2000) -> str:
    """``text`` without control, bidirectional, invisible and surrogate characters, cut to ``kept`` characters."""
    from harness.domain.words import plain

    return plain(text, kept)
