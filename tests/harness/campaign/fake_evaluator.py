"""An evaluator without a clock: tiers and static findings are real, times come from a function of the source."""

from __future__ import annotations

import functools
from collections.abc import Callable

from harness.domain.request import EvaluationRequest
from harness.domain.samples import PairedRound, Samples, ShapeSamples
from harness.domain.verdict import (
    Environment,
    Evaluator,
    Isolation,
    Ratio,
    Reason,
    ShapeTiming,
    TierResult,
    Timing,
    Verdict,
)
from harness.domain.vocabulary import Backend, Blame, Comparison, Evidence, Outcome, Role, Stage
from harness.evaluation.source.tier import classify
from harness.operators import registry

Speed = Callable[[str], float]
"""Microseconds of a kernel from its source."""


def steady(source: str) -> float:
    """A time that depends on the text alone: deterministic, different for most kernels."""
    return 50.0 + (sum(source.encode()) % 50)


def step_tier(incumbent: str, request: EvaluationRequest) -> TierResult:
    """The real tier of the request's candidate."""
    return tier_between(incumbent, request.candidate.source, request.operator.name, request.backend)


@functools.cache
def tier_between(base: str, new: str, operator: str, backend: Backend) -> TierResult:
    """``classify``, kept: many campaigns climb the same ladder."""
    return classify(base, new, registry.get(operator), backend)


class FakeEvaluator:
    """Counts what it was asked; ``refuse`` maps marks in a source to outcomes."""

    def __init__(self, speed: Speed = steady, *, refuse: dict[str, Outcome] | None = None, timed: bool = True) -> None:
        self.speed, self.refuse, self.timed = speed, refuse or {}, timed
        self.requests: list[EvaluationRequest] = []

    def __call__(self, request: EvaluationRequest) -> tuple[Verdict, Samples | None]:
        self.requests.append(request)
        for mark, outcome in self.refuse.items():
            if mark in request.candidate.source:
                return self._verdict(request, outcome), None
        incumbent = next((o.source for o in request.against if o.role is Role.INCUMBENT), None)
        if incumbent is not None:
            tier = step_tier(incumbent, request)
            if tier.tier > request.grant:
                return self._verdict(request, Outcome.GRANT_EXCEEDED), None
        return self._verdict(request, Outcome.PASSED), self._samples(request) if self.timed else None

    def _verdict(self, request: EvaluationRequest, outcome: Outcome) -> Verdict:
        passed = outcome is Outcome.PASSED
        incumbent = next((o.source for o in request.against if o.role is Role.INCUMBENT), None)
        timed = passed and self.timed
        return Verdict(
            kernel=request.candidate.digest, operator=request.operator, backend=request.backend,
            hardware=request.hardware, target=None,
            environment=Environment("test", None, None, None, "3.11"),
            evaluator=Evaluator("test", Isolation(3)), outcome=outcome,
            stage=Stage.RECHECK if passed else Stage.CORRECTNESS,
            blame=None if passed else Blame.POLICY if outcome is Outcome.GRANT_EXCEEDED else Blame.CANDIDATE,
            reasons=() if passed else (Reason("refused", Stage.CORRECTNESS, "refused by the fake"),),
            step_tier=step_tier(incumbent, request) if incumbent else None,
            timing=self._timing(request) if timed else None,
            comparison=self._comparison(request) if timed and request.against else Comparison.NONE,
        )

    def _ratio(self, request: EvaluationRequest, other: str) -> Ratio:
        ratio = self.speed(other) / self.speed(request.candidate.source)
        return Ratio(ratio, ratio * 0.99, ratio * 1.01, 5)

    def _comparison(self, request: EvaluationRequest) -> Comparison:
        ratio = self._ratio(request, request.against[0].source)
        if ratio.low > 1.02:
            return Comparison.FASTER
        return Comparison.SLOWER if ratio.high < 0.98 else Comparison.CANNOT_TELL

    def _timing(self, request: EvaluationRequest) -> Timing:
        time = self.speed(request.candidate.source)
        versus = {str(o.role): self._ratio(request, o.source) for o in request.against}
        shape = ShapeTiming("all", 1.0, time, time, time, 0.01, gbps=10.0, roof_share=min(1.0, 20.0 / time))
        return Timing(Evidence.BOUNDED, 0.005, 5, (shape,), versus)

    def _samples(self, request: EvaluationRequest) -> Samples:
        time = self.speed(request.candidate.source)
        pairs = {str(o.role): (PairedRound((self.speed(o.source),), (time,)),) for o in request.against}
        return Samples((ShapeSamples("all", 1.0, pairs, ()),))
