"""Numeric options: one type for all of them. Finite, and between bounds that are declared; whatever is not is refused
by name before anything begins."""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass

MONTH_S = 30 * 86400.0


@dataclass(frozen=True, slots=True)
class Number:
    """An argument type. ``least`` and ``most`` are allowed themselves, ``least`` only unless ``above``; ``whole``
    numbers alone where said."""

    least: float
    most: float
    whole: bool = False
    above: bool = False

    def __call__(self, text: str) -> float:
        """Raises ``ArgumentTypeError``, which argparse words with the option's name."""
        try:
            value: float = int(text) if self.whole else float(text)
        except ValueError:
            value = math.nan
        low = value > self.least if self.above else value >= self.least
        if not (low and value <= self.most):  # so that what is no number fails as well
            raise argparse.ArgumentTypeError(f"{text[:40]!r} is not {self}")
        return value

    def __str__(self) -> str:
        kind = "a whole number" if self.whole else "a number"
        return f"{kind} {'above' if self.above else 'from'} {_said(self.least)} to {_said(self.most)}"


def _said(bound: float) -> str:
    """A bound as a person writes it: no exponent."""
    return f"{int(bound):,}" if bound == int(bound) else f"{bound:,}"


COUNT = Number(1, 1_000_000, whole=True)
"""How many: rounds, samples, configurations."""
JOBS = Number(1, 1024, whole=True)
"""Processes at a time."""
SEED = Number(0, 2**63 - 1, whole=True)
SECONDS = Number(0, MONTH_S, above=True)
MINUTES = Number(0, MONTH_S / 60, above=True)
