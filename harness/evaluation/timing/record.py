"""What a timing session measured, as it comes: per shape, side and round. Pure."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field


@dataclass
class ShapeRecord:
    """Microseconds per call of one shape: per side, one list per round; ``claims``: a process's own clock over ours.

    Per round: ``calls`` per sample, ``speed`` of the clock as a share of its fastest, ``disturbed`` (empty if quiet).
    """

    rounds: dict[str, list[tuple[float, ...]]] = field(default_factory=lambda: defaultdict(list))
    hot: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    repeated: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    claims: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    cold: list[float] = field(default_factory=list)
    calls: list[tuple[int, ...]] = field(default_factory=list)
    speed: list[float] = field(default_factory=list)
    disturbed: list[str] = field(default_factory=list)

    def add(self, other: ShapeRecord) -> None:
        """Append the rounds of ``other``."""
        for mine, more in ((self.hot, other.hot), (self.repeated, other.repeated), (self.claims, other.claims)):
            for name, values in more.items():
                mine[name] += values
        for name, rounds in other.rounds.items():
            self.rounds[name] += rounds
        self.cold += other.cold
        self.calls += other.calls
        self.speed += other.speed
        self.disturbed += other.disturbed


@dataclass
class Record:
    """Everything a session measured. ``noisy``: something other than the candidate itself disturbed a round."""

    shapes: dict[str, ShapeRecord] = field(default_factory=lambda: defaultdict(ShapeRecord))
    first_calls: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    disturbed: list[str] = field(default_factory=list)
    noisy: bool = False

    def add(self, one: Record) -> None:
        """Append one round; a round counts once among the disturbed, whatever number of its shapes was."""
        self.disturbed += one.disturbed[:1]
        self.noisy |= one.noisy
        for name, values in one.first_calls.items():
            self.first_calls[name] += values
        for label, shape in one.shapes.items():
            self.shapes[label].add(shape)
