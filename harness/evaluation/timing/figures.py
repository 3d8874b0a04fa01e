"""From a session's record to samples, and from samples to the figures of a verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from harness.domain.samples import PairedRound, Samples, ShapeSamples
from harness.domain.verdict import Ratio, ShapeTiming, Timing
from harness.domain.vocabulary import Evidence
from harness.evaluation.timing.comparison import candidate_rounds, cv_of, noise_of, pooled
from harness.evaluation.timing.record import Record, ShapeRecord
from harness.evaluation.timing.sides import AGAIN, CANDIDATE
from harness.evaluation.timing.statistics import median, quantile, robust_cv
from harness.operators.base import ShapePoint

SUSPICIOUS_SHARE, IMPOSSIBLE_SHARE = 0.95, 0.90
"""A time below these shares of the roof's floor is suspicious, or refused."""
CLAIM_TOLERANCE = 0.2
REPEAT_GAIN = 2.0
"""How much more than any other kernel one may gain from calls on the very same contents, caches being warm anyway."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Measured roofs one by one: bytes per second of a copy and of reading alone, operations per second of a matrix
    product (``None``: not measured)."""

    copy: float
    read: float
    matmul: float | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """What one call of a shape has to do: bytes, operations, the seconds that the roof gives for them, and the least
    seconds once everything that the caches may hold is free.

    ``doubtful_s`` is what a time is suspicious below, where that is more than the least: matrix products count at the
    rate that was measured, not at the one that the datasheet promises."""

    bytes: int
    flops: int
    floor_s: float
    least_s: float
    doubtful_s: float | None = None
    rates: Rates | None = None

    @property
    def doubt_s(self) -> float:
        """Seconds below which, about, a person has to look."""
        return max(self.least_s, self.doubtful_s or 0.0)


def samples_of(record: Record, points: tuple[ShapePoint, ...], roles: Mapping[str, str], control: str) -> Samples:
    """Paired samples by role. ``roles`` maps each role to the side that held its kernel; ``control`` is the side that
    ``again`` is a second process of."""
    shapes = []
    for point in points:
        shape = record.shapes[point.label]
        first = {side: tuple(values) for side, values in record.first_calls.items()}
        named = {CANDIDATE: CANDIDATE, **roles}
        shapes.append(ShapeSamples(
            shape=point.label, weight=point.weight,
            versus={role: _paired(shape, side, CANDIDATE) for role, side in roles.items()},
            aa=_paired(shape, control, AGAIN) if AGAIN in shape.rounds else (),
            cold=tuple(shape.cold), first_call=median(first[CANDIDATE]),
            hot={name: tuple(shape.hot[side]) for name, side in named.items()},
            first_calls={name: first[side] for name, side in named.items()},
            repeated={name: tuple(shape.repeated[side]) for name, side in named.items()},
            speed=tuple(shape.speed), disturbed=tuple(shape.disturbed),
        ))
    return Samples(tuple(shapes))


def _paired(shape: ShapeRecord, other: str, mine: str) -> tuple[PairedRound, ...]:
    return tuple(PairedRound(a, b) for a, b in zip(shape.rounds[other], shape.rounds[mine], strict=True))


def timing_of(samples: Samples, work: Mapping[str, Work], *, evidence: Evidence, longer: bool) -> Timing:
    """The figures of all shapes and the overall ratios."""
    roles = list(samples.shapes[0].versus)
    rounds = candidate_rounds(samples.shapes[0])
    return Timing(
        evidence=evidence, noise=noise_of(samples), rounds=len(rounds), pairs=len(rounds[0]), longer=longer,
        shapes=tuple(_shape(shape, work[shape.shape]) for shape in samples.shapes),
        overall={role: pooled([(s.weight, s.versus[role]) for s in samples.shapes]) for role in roles},
    )


def _shape(shape: ShapeSamples, work: Work) -> ShapeTiming:
    rounds = candidate_rounds(shape)
    values = [value for one in rounds for value in one]
    middle = median([median(one) for one in rounds])
    versus: dict[str, Ratio] = {role: pooled([(1.0, paired)]) for role, paired in shape.versus.items()}
    hot = shape.hot.get(CANDIDATE)
    return ShapeTiming(
        shape=shape.shape, weight=shape.weight, median_us=middle, p10=quantile(values, 0.1),
        p90=quantile(values, 0.9), cv=median([robust_cv(one) for one in rounds]),
        cold_us=median(shape.cold) if shape.cold else None, hot_us=median(hot) if hot else None,
        first_call_us=shape.first_call, gbps=work.bytes / middle / 1e3, tflops=work.flops / middle / 1e6,
        roof_share=work.floor_s * 1e6 / middle, versus=versus, **_shares(work, middle * 1e-6),
    )


def _shares(work: Work, seconds: float) -> dict[str, float]:
    """What a call in ``seconds`` reaches of each roof that was measured by itself."""
    if work.rates is None:
        return {}
    moved, done, rates = work.bytes / seconds, work.flops / seconds, work.rates
    shares = {"copy_share": moved / rates.copy, "read_share": moved / rates.read}
    return shares | ({"matmul_share": done / rates.matmul} if rates.matmul else {})


def impossible(timing: Timing, work: Mapping[str, Work]) -> list[str]:
    """Shapes whose time lies below 0.9 of the least time: no honest call can be that fast."""
    return [_floor_text(s) for s in timing.shapes if s.median_us < IMPOSSIBLE_SHARE * work[s.shape].least_s * 1e6]


def suspicious(timing: Timing, work: Mapping[str, Work], record: Record) -> list[str]:
    """What a person has to look at: times below the least, processes whose own clock disagrees with the judge's, and a
    gain from repeated contents that looks like remembered answers."""
    low, high = IMPOSSIBLE_SHARE * 1e6, SUSPICIOUS_SHARE * 1e6
    found = [_floor_text(s) for s in timing.shapes
             if low * work[s.shape].least_s <= s.median_us < high * work[s.shape].doubt_s]
    for label, shape in record.shapes.items():
        unseen = {side: _unseen_us(shape, side) for side, claims in shape.claims.items() if claims}
        late, usually = unseen.pop(CANDIDATE, 0.0), max(unseen.values(), default=0.0)
        # On a loaded machine every process is woken late and so shows less than the judge; only the odd one is a lead.
        if abs(late) - max(usually, 0.0) > CLAIM_TOLERANCE * _judged_us(shape, CANDIDATE):
            found.append(f"On {label} the process's own clock misses {late:.0f} us of each call that the judge saw, "
                         f"those of the other kernels at most {usually:.0f} us.")
        gains = {side: _repeat_gain(shape, side) for side in shape.hot if shape.repeated.get(side)}
        gain, usual = gains.pop(CANDIDATE, 0.0), max(gains.values(), default=None)
        if usual is not None and gain > REPEAT_GAIN * max(usual, 1.0):
            found.append(f"On {label} calls on the same contents are {gain:.1f} times as fast as calls on new ones "
                         f"(other kernels: {usual:.1f} times). Look for answers that are kept between calls.")
    return found


def _judged_us(shape: ShapeRecord, side: str) -> float:
    """Microseconds of a call by the judge's clock; 1 where nothing was sampled, so that shares stay shares."""
    samples = [value for one in shape.rounds.get(side, ()) for value in one]
    return median(samples) if samples else 1.0


def _unseen_us(shape: ShapeRecord, side: str) -> float:
    """Microseconds of a call that the judge's clock saw and the process's own did not."""
    return (1.0 - median(shape.claims[side])) * _judged_us(shape, side)


def _repeat_gain(shape: ShapeRecord, side: str) -> float:
    """How much faster calls on known contents are than calls on new ones, with equally warm caches."""
    return median(shape.hot[side]) / max(median(shape.repeated[side]), 1e-9)


def _floor_text(shape: ShapeTiming) -> str:
    return (f"{shape.shape}: {shape.median_us:.1f} us is {shape.roof_share or 0:.2f} times as fast as the measured "
            f"roof of this machine allows ({shape.gbps or 0:.1f} GB/s).")


def unsteady(samples: Samples, limit: float, role: str | None) -> str | None:
    """The candidate's spread where it breaks ``limit`` while the opponent in the same session keeps well below it.

    It has to break it in all rounds but one of five, the share that "faster" asks for too: a machine's one bad moment
    is no property of a kernel.
    """
    for shape in samples.shapes:
        rounds = candidate_rounds(shape)
        mine = cv_of(rounds)
        other = cv_of([one.other for one in (shape.versus[role] if role else shape.aa)])
        breaking = sum(1 for values in rounds if robust_cv(values) > limit)
        if breaking >= math.ceil(0.8 * len(rounds)) and other <= limit / 2:
            return (f"On {shape.shape} the time of the kernel varies by {mine:.1%} (limit {limit:.1%}), that of the "
                    f"other kernel in the same session by {other:.1%}.")
    return None
