"""One evaluation in progress: what every stage reads and adds to."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from harness.domain.plan import CompiledPlan, LaunchPlan
from harness.domain.profile import CounterProfile
from harness.domain.request import EvaluationRequest
from harness.domain.samples import Samples
from harness.domain.verdict import Correctness, Reason, Resources, TierResult, Timing
from harness.domain.vocabulary import Backend, Comparison, Outcome, Purpose, Role, Stage
from harness.evaluation.ports import WorkerOpener
from harness.operators.base import OperatorSpec, Workload

Progress = Callable[[Stage, int, int, str], None]
"""``progress(stage, done, total, sentence)``; called at most a few times a second."""


class Place(StrEnum):
    """Where a candidate runs while it is judged: a CPU kernel in its own process, Triton's interpreter on reduced
    shapes, or a plan of it on the device of this host."""

    NUMBA = "numba"
    INTERPRETER = "interpreter"
    DEVICE = "device"


class Refused(Exception):
    """A stage ends the evaluation with an outcome and at least one reason."""

    def __init__(self, outcome: Outcome, *reasons: Reason) -> None:
        super().__init__(reasons[0].text if reasons else str(outcome))
        self.outcome = outcome
        self.reasons = reasons


@dataclass
class Run:
    """Mutable record of one evaluation. Stages are functions ``stage(run) -> None`` that raise ``Refused``."""

    request: EvaluationRequest
    spec: OperatorSpec
    workload: Workload
    open_workers: Callable[[str], WorkerOpener]  # by sandbox mode
    progress: Progress
    target: str | None = None  # device a Triton plan is compiled for, e.g. "nvidia-h200"
    device: str | None = None  # the GPU of this host that judges and times the candidate; None without one
    open_device: Callable[..., Any] | None = None  # starts a launcher on that GPU (``launcher.process.open_device``)
    deadline: float = math.inf  # time.monotonic() at which the evaluation is over
    seed: int | None = None  # drawn by the judge after the candidate was imported
    judging: Any = None  # the judge's open session, from smoke to probes
    bases: Any = None  # contents of the measured shapes, from correctness to recheck (``judge.bases``)
    bench: Any = None  # what the clock prepared, from benchmark to recheck
    stage: Stage = Stage.ADMIT
    step_tier: TierResult | None = None
    params: dict[str, Any] = field(default_factory=dict)
    notes: list[Reason] = field(default_factory=list)
    aside: list[Callable[[], None]] = field(default_factory=list)  # ends work beside the verdict path; see ``settle``
    correctness: Correctness = Correctness()
    resources: Resources = Resources()
    plans: list[LaunchPlan] = field(default_factory=list)
    compiled: list[CompiledPlan] = field(default_factory=list)
    timing: Timing | None = None
    samples: Samples | None = None
    profile: CounterProfile | None = None
    comparison: Comparison = Comparison.NONE
    regressions: tuple[str, ...] = ()
    suspicious: list[str] = field(default_factory=list)
    score: float | None = None
    clocks: dict[str, Any] = field(default_factory=dict)

    @property
    def place(self) -> Place:
        """Where the candidate runs; case lists and probe sizes follow from it."""
        if self.request.backend is Backend.NUMBA:
            return Place.NUMBA
        return Place.INTERPRETER if self.device is None else Place.DEVICE

    @property
    def source(self) -> str:
        """The candidate's text."""
        return self.request.candidate.source

    @property
    def compared_role(self) -> Role | None:
        """Which opponent ``comparison`` refers to: incumbent in a round, champion else baseline otherwise."""
        roles = [opponent.role for opponent in self.request.against]
        for role in (Role.INCUMBENT, Role.CHAMPION, Role.BASELINE):
            if role in roles:
                return role
        return None

    @property
    def worth_profiling(self) -> bool:
        """Whether to profile: who asks gets one, but in a round only the kernel that the next one starts from."""
        kept = self.request.purpose is not Purpose.ROUND or self.comparison in (Comparison.NONE, Comparison.FASTER)
        return self.request.profile and kept

    @property
    def remaining_s(self) -> float:
        """Seconds left until the deadline; negative when it has passed."""
        return self.deadline - time.monotonic()

    def settle(self) -> None:
        """End what runs beside the verdict path: before the clock starts, and before the verdict is written."""
        while self.aside:
            self.aside.pop()()

    def ensure_time(self) -> None:
        """Between two calls of the candidate: a kernel that is slow everywhere must not hold the evaluator.

        Raises:
            Refused: ``timeout``, once the deadline has passed.
        """
        if self.remaining_s <= 0:
            text = (
                f"The evaluation passed its limit of {self.request.deadline_s:g} s in stage {self.stage}. "
                "Make the kernel or its compilation faster, or raise the limit of the campaign."
            )
            raise Refused(Outcome.TIMEOUT, Reason(code="timeout", stage=self.stage, text=text))

    def opponent(self, role: Role) -> str | None:
        """Source of the opponent in ``role``, or ``None``."""
        return next((o.source for o in self.request.against if o.role is role), None)
