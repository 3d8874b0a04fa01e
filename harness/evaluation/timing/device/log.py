"""What the rounds of a session showed, shape by shape, and the samples document made of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.backends.triton.launcher.requests import RoundRequest, RoundResult
from harness.domain.samples import PairedRound, Samples, ShapeSamples
from harness.evaluation.timing.device.apart import Difference
from harness.evaluation.timing.device.evidence import Slope, lower, slope_us
from harness.evaluation.timing.device.shape import Shape
from harness.evaluation.timing.device.verify import Left
from harness.evaluation.timing.sides import AGAIN, CANDIDATE
from harness.evaluation.timing.statistics import median


@dataclass
class ShapeLog:
    """What the rounds of one shape showed, microseconds per call; lists have one entry per round."""

    rounds: dict[str, list[tuple[float, ...]]] = field(default_factory=lambda: defaultdict(list))
    hot: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    mhz: list[float | None] = field(default_factory=list)
    disturbed: list[str] = field(default_factory=list)
    slopes: dict[str, Slope] = field(default_factory=dict)
    left: list[Left] = field(default_factory=list)
    apart: list[Difference] = field(default_factory=list)
    empty_us: float = 0.0

    def us(self, side: str) -> float:
        """The median over rounds of the medians of a side."""
        return median([median(one) for one in self.rounds[side]])

    def add(self, request: RoundRequest, result: RoundResult, why: str) -> None:
        """Take a round that counts; ``why`` says what disturbed it, empty where nothing did."""
        for side, values in result.us.items():
            pairs = list(zip(values, request.sweeps, strict=True))
            self.rounds[side].append(tuple(us for us, sweep in pairs if sweep.flush))
            self.hot[side] += [us for us, sweep in pairs if not sweep.flush]
        clocks = [clock for clock in result.mhz if clock is not None]
        self.mhz.append(sum(clocks) / len(clocks) if clocks else None)
        self.disturbed.append(why)
        self.empty_us = result.empty_us

    def take_slopes(self, result: RoundResult) -> None:
        """Take the slopes of a round, where they are lower than those known."""
        for side, judged in result.judged.items():
            new = Slope(slope_us(judged), slope_us(result.slope[side]))
            self.slopes[side] = lower(self.slopes.get(side), new)

    def paired(self, other: str, mine: str) -> tuple[PairedRound, ...]:
        """The rounds of two sides, sample beside sample."""
        return tuple(PairedRound(a, b) for a, b in zip(self.rounds[other], self.rounds[mine], strict=True))


def samples_of(shapes: Mapping[str, Shape], logs: Mapping[str, ShapeLog], first_us: Mapping[str, float],
               roles: Mapping[str, str], control: str) -> Samples:
    """Paired samples by role. ``roles`` maps each role to the side that held its kernel; ``control`` is the side that
    ``again`` is a second copy of; ``first_us`` what a first call costs each side, microseconds."""
    named = {CANDIDATE: CANDIDATE, **roles}
    return Samples(tuple(
        ShapeSamples(
            shape=label, weight=shapes[label].point.weight,
            versus={role: log.paired(side, CANDIDATE) for role, side in roles.items()},
            aa=log.paired(control, AGAIN) if AGAIN in log.rounds else (),
            cold=tuple(median(one) for one in log.rounds[CANDIDATE]), first_call=first_us[CANDIDATE],
            hot={name: tuple(log.hot[side]) for name, side in named.items()},
            first_calls={name: (first_us[side],) for name, side in named.items()},
            mhz=tuple(log.mhz), disturbed=tuple(log.disturbed),
        )
        for label, log in logs.items()
    ))
