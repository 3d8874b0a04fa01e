"""Small robust statistics. Standard library only, so that the web side recomputes the same figures."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

RESAMPLES = 400
CONFIDENCE = 0.95


def median(values: Sequence[float]) -> float:
    """The middle value, the mean of the two middle ones for even counts."""
    return quantile(values, 0.5)


def quantile(values: Sequence[float], share: float) -> float:
    """Linear interpolation between order statistics; exactly symmetric under negation of all values.

    Raises:
        ValueError: there are no values.
    """
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    weight = place - low
    return ordered[low] * (1.0 - weight) + ordered[high] * weight


def robust_cv(values: Sequence[float]) -> float:
    """1.4826 x median absolute deviation / median: the standard deviation's share, blind to a few outliers."""
    middle = median(values)
    return 1.4826 * median([abs(value - middle) for value in values]) / middle


def resampled(draw: Callable[[random.Random], float], seed: int) -> tuple[float, float]:
    """The central 95 % of ``draw``'s results over ``RESAMPLES`` resamples with a fixed ``seed``."""
    source = random.Random(seed)
    results = [draw(source) for _ in range(RESAMPLES)]
    tail = (1.0 - CONFIDENCE) / 2.0
    return quantile(results, tail), quantile(results, 1.0 - tail)
