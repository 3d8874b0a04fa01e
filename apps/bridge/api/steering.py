"""What a person may name when steering an agent."""

from __future__ import annotations


def direction_names() -> tuple[str, ...]:
    """Every direction, in the order of the vocabulary."""
    from harness.domain.vocabulary import Direction

    return tuple(str(direction) for direction in Direction)
