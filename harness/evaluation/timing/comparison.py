"""Faster, slower or cannot tell: the three-valued comparison, the score and the regressions, from raw samples alone.

Pure and deterministic; standard library only, so that anyone who holds the samples recomputes the same answer.
Formulas: CONTRACTS section 6. All intervals resample process rounds first, then the pairs within them.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from harness.domain.goal import Weights
from harness.domain.samples import PairedRound, Samples, ShapeSamples
from harness.domain.verdict import Ratio
from harness.domain.vocabulary import Comparison
from harness.evaluation.timing.statistics import median, resampled, robust_cv

MARGIN = 0.02
NOISE_FACTOR = 3.0
ROUNDS_SHARE = 0.8
REGRESSION = 0.05
LEAST_CV = 0.005
"""Below half a percent the spread is that of the clock; it counts as half a percent in the score."""
SEED = 20_261_129


@dataclass(frozen=True, slots=True)
class Compared:
    """The answer for one opponent. Fractions: ``noise`` is the A/A half-width, ``margin`` what must be cleared."""

    comparison: Comparison
    overall: Ratio
    shapes: dict[str, Ratio]
    noise: float
    margin: float
    rounds: int
    regressions: tuple[str, ...]

    @property
    def promising(self) -> bool:
        """Cannot tell, but the point estimate lies above the margin: worth one longer measurement."""
        return self.comparison is Comparison.CANNOT_TELL and self.overall.ratio > 1.0 + self.margin


def compare(samples: Samples, role: str) -> Compared:
    """Compare the candidate with the opponent in ``role``.

    Raises:
        ValueError: the samples hold no rounds against ``role``.
    """
    sides = [(shape.weight, shape.versus.get(role, ())) for shape in samples.shapes]
    if not sides or any(not rounds for _, rounds in sides):
        raise ValueError(f"the samples hold no rounds against '{role}'")
    overall = pooled(sides)
    noise = noise_of(samples)
    margin = max(MARGIN, NOISE_FACTOR * noise)
    shapes = {shape.shape: pooled([(1.0, shape.versus[role])]) for shape in samples.shapes}
    rounds = len(sides[0][1])
    return Compared(
        comparison=_decide(overall, _rounds_won(sides, sign=-1), rounds, margin), overall=overall, shapes=shapes,
        noise=noise, margin=margin, rounds=rounds,
        regressions=tuple(name for name, ratio in shapes.items() if ratio.high < 1.0 / (1.0 + REGRESSION)),
    )


def _decide(overall: Ratio, rounds_lost: int, rounds: int, margin: float) -> Comparison:
    needed = math.ceil(ROUNDS_SHARE * rounds)
    if overall.low > 1.0 + margin and (overall.rounds_won or 0) >= needed:
        return Comparison.FASTER
    if overall.high < 1.0 / (1.0 + margin) and rounds_lost >= needed:
        return Comparison.SLOWER
    return Comparison.CANNOT_TELL


def noise_of(samples: Samples) -> float:
    """Half the width of the A/A interval, as a fraction; 0 where no A/A control was measured."""
    controls = [(shape.weight, shape.aa) for shape in samples.shapes]
    if not controls or any(not rounds for _, rounds in controls):
        return 0.0
    ratio = pooled(controls)
    return math.exp((math.log(ratio.high) - math.log(ratio.low)) / 2.0) - 1.0


def pooled(sides: Sequence[tuple[float, Sequence[PairedRound]]]) -> Ratio:
    """Weighted geometric mean over shapes of the median over rounds of the median paired ratio, with its interval.

    ``sides`` holds (weight, rounds) per shape. Rounds are drawn alike for all shapes, whose processes they share.
    """
    logs = [(weight, [_log_ratios(one) for one in rounds]) for weight, rounds in sides]
    total = sum(weight for weight, _ in logs)
    count = min(len(rounds) for _, rounds in logs)

    def once(source: random.Random) -> float:
        chosen = [source.randrange(count) for _ in range(count)]
        result = 0.0
        for weight, rounds in logs:
            medians = [median(source.choices(rounds[index], k=len(rounds[index]))) for index in chosen]
            result += weight * median(medians)
        return result / total

    point = sum(weight * median([median(one) for one in rounds]) for weight, rounds in logs) / total
    low, high = resampled(once, SEED)
    return Ratio(math.exp(point), math.exp(low), math.exp(high), rounds_won=_rounds_won(sides, sign=1))


def _rounds_won(sides: Sequence[tuple[float, Sequence[PairedRound]]], *, sign: int) -> int:
    """Rounds whose weighted median log-ratio has ``sign``."""
    count = min(len(rounds) for _, rounds in sides)
    sums = [sum(weight * median(_log_ratios(rounds[index])) for weight, rounds in sides) for index in range(count)]
    return sum(1 for value in sums if sign * value > 0)


def _log_ratios(one: PairedRound) -> list[float]:
    return [math.log(other / mine) for other, mine in zip(one.other, one.candidate, strict=True)]


def score(samples: Samples, weights: Weights, role: str = "baseline") -> float | None:
    """exp(sum of weight x ln(baseline / candidate)) over latency, seconds per element (hot), robust CV and first call.

    ``None`` where nothing was measured against ``role`` or a weighted metric is missing on one side.
    """
    if not samples.shapes or any(not shape.versus.get(role) for shape in samples.shapes):
        return None
    gains = {
        "latency": math.log(pooled([(s.weight, s.versus[role]) for s in samples.shapes]).ratio),
        "throughput": _weighted(samples.shapes, lambda s: _log_of_medians(s.hot, role)),
        "stability": _weighted(samples.shapes, lambda s: _log_cv(s.versus[role])),
        "cold_start": _weighted(samples.shapes, lambda s: _log_of_medians(s.first_calls, role)),
    }
    total = 0.0
    for name, gain in gains.items():
        weight = getattr(weights, name)
        if weight and gain is None:
            return None
        total += weight * (gain or 0.0)
    return math.exp(total)


def _weighted(shapes: Sequence[ShapeSamples], of: Callable[[ShapeSamples], float | None]) -> float | None:
    """The weighted mean of ``of(shape)``, ``None`` where one is missing."""
    values = [(shape.weight, of(shape)) for shape in shapes]
    known = [(weight, value) for weight, value in values if value is not None]
    if len(known) < len(values):
        return None
    return sum(weight * value for weight, value in known) / sum(weight for weight, _ in known)


def _log_of_medians(sides: Mapping[str, Sequence[float]], role: str) -> float | None:
    other, mine = sides.get(role), sides.get("candidate")
    return math.log(median(other) / median(mine)) if other and mine else None


def _log_cv(rounds: Sequence[PairedRound]) -> float:
    return math.log(cv_of([one.other for one in rounds]) / cv_of([one.candidate for one in rounds]))


def cv_of(rounds: Sequence[Sequence[float]]) -> float:
    """Median over rounds of the robust CV within the round, at least ``LEAST_CV``."""
    return max(median([robust_cv(one) for one in rounds]), LEAST_CV)


def candidate_rounds(shape: ShapeSamples) -> list[tuple[float, ...]]:
    """The candidate's samples per round, in microseconds, wherever they were paired."""
    rounds = next(iter(shape.versus.values()), shape.aa)
    return [one.candidate for one in rounds]
