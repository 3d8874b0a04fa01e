"""A timing session on a launcher: kernels by side, shapes, rounds of paired samples, and everything they showed.

Nothing here opens a device: whoever calls holds it. ``measure`` is a whole session without an evaluation.
"""

from __future__ import annotations

import math
import os
import random
import secrets
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from harness.backends.triton.device import faults
from harness.backends.triton.launcher.binary import Binary
from harness.backends.triton.launcher.client import Device, DeviceFault, PlanRefused
from harness.backends.triton.launcher.requests import RoundRequest, RoundResult
from harness.domain.errors import InfrastructureError
from harness.domain.plan import LaunchPlan
from harness.domain.samples import Samples
from harness.domain.verdict import Reason
from harness.domain.vocabulary import Outcome, Stage
from harness.evaluation.ports import CandidateFault, Fault
from harness.evaluation.run import Refused
from harness.evaluation.timing.device import closeness, watch
from harness.evaluation.timing.device.apart import decide, differences
from harness.evaluation.timing.device.contents import Factors
from harness.evaluation.timing.device.evidence import too_fast
from harness.evaluation.timing.device.log import ShapeLog, samples_of
from harness.evaluation.timing.device.shape import Shape
from harness.evaluation.timing.device.verify import LEAST_VERIFIED, choose, left_by, verify
from harness.evaluation.timing.sides import AGAIN, CANDIDATE, opponent_failed
from harness.evaluation.timing.statistics import median
from harness.hardware import nvml
from harness.operators.base import OperatorSpec, ShapePoint, Workload

ROUND_S = 60.0
"""The longest that one launcher round may take, seconds."""
ESTIMATE_PAIRS = 3
COOL_S, COOL_LOOKS = 1.0, 20
"""The longest that a slowed device is waited for before a round, seconds, and the looks at it meanwhile."""

Call = tuple[LaunchPlan, Sequence[Binary]]
"""What runs for one shape: a plan and one binary per launch."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """One side's kernel: its call for every shape, and the seconds that compiling all of them took."""

    calls: Mapping[str, Call]
    compile_s: float = 0.0


class Session:
    """Rounds on ``device`` for one stage of one evaluation."""

    def __init__(self, device: Device, shapes: Mapping[str, Shape], factors: Factors, *, stage: Stage,
                 source: random.Random, trusted: str = AGAIN, relative: float | None = None,
                 ensure_time: Callable[[], None] = lambda: None,
                 look: Callable[[str], nvml.Reading | None] = nvml.read,
                 pause: Callable[[float], None] = time.sleep) -> None:
        """``trusted`` is the side that the candidate's outputs are compared with, whole and on the device;
        ``relative`` a goal's own tolerance. ``ensure_time`` raises once the evaluation's deadline has passed; ``look``
        reads the device's state, and ``pause`` lets it cool down for so many seconds."""
        self._device, self._shapes, self._factors, self._stage = device, shapes, factors, stage
        self._random, self._ensure_time, self._look, self._pause = source, ensure_time, look, pause
        self._trusted, self._relative = trusted, relative
        self._own: set[str] = {CANDIDATE}  # sides that hold the candidate's kernel
        self._handles: dict[str, dict[str, int]] = defaultdict(dict)  # by shape, then by side
        self.first_us: dict[str, float] = {}
        self.logs: dict[str, ShapeLog] = {label: ShapeLog() for label in shapes}
        self.watch = watch.Log(os.getpid())
        self._seen: nvml.Reading | None = None

    def load(self, kernels: Mapping[str, Kernel]) -> None:
        """Load every side's plans, each with modules and scratch of its own; notes what a first call costs.

        Raises:
            CandidateFault: the launcher refuses a plan of the candidate.
            InfrastructureError: it refuses one of another side.
            DeviceFault: from the launcher.
        """
        for side, kernel in kernels.items():
            if kernel is kernels.get(CANDIDATE):
                self._own.add(side)
            seconds = kernel.compile_s
            for label in self._shapes:
                began = time.perf_counter()
                self._handles[label][side] = self._loaded(side, kernel.calls[label])
                seconds += time.perf_counter() - began
            self.first_us[side] = seconds * 1e6

    def _loaded(self, side: str, call: Call) -> int:
        try:
            return self._device.load(*call)
        except PlanRefused as refusal:
            if side == CANDIDATE:
                raise CandidateFault(faults.refused(refusal)) from refusal
            raise InfrastructureError(f"The launcher refuses the {side} kernel, which the candidate is compared with: "
                                      f"{refusal.text} Nothing was recorded against the candidate.") from refusal

    def estimate(self) -> None:
        """Settle the batch of every shape by a few samples that nobody sees."""
        for label in self._shapes:
            _, result = self._ask(label, ESTIMATE_PAIRS, None, tuple(self._handles[label]))
            self._shapes[label].settle([median(values) for values in result.us.values()])

    def rounds(self, count: int, pairs: Mapping[str, int], *, repeats: int = 0, slopes: bool = True,
               told: Callable[[int], None] = lambda number: None) -> None:
        """``count`` rounds over all shapes. A disturbed one is measured again, once, and ``repeats`` times in all; what
        stays disturbed is kept and named.

        Raises:
            Refused: outputs of the candidate changed after its time was taken, or it changed inputs.
            DeviceFault: a kernel failed.
            InfrastructureError: the launcher's answer makes no sense, or another side did so.
        """
        for number in range(count):
            told(number)
            for label, log in self.logs.items():
                self._ensure_time()
                repeats -= self._quiet(label, log, pairs[label], slopes, min(1, repeats))

    def _quiet(self, label: str, log: ShapeLog, pairs: int, slopes: bool, repeats: int) -> int:
        sides = tuple(self._handles[label])
        for spent in range(repeats + 1):
            expected = self._slope_wanted(label, log, sides) if slopes else None
            before = self._calm()
            request, result = self._ask(label, pairs, expected, sides)
            after = self._seen = self._look(self._device.info.uuid)  # rounds follow at once: also the next one's start
            self.watch.add(before, after)
            log.left += left_by(self._shapes[label], request, result)
            log.apart += differences(self._shapes[label], request, result)
            log.take_slopes(result)
            why = watch.disturbance(before, after, request.sweeps, result.mhz)
            if spent == repeats or not why:
                log.add(request, result, why)
                self.watch.repeated += spent
                return spent
        return repeats

    def _calm(self) -> nvml.Reading | None:
        """The device's state before a round; a slowed device is given a moment to cool down."""
        for _ in range(COOL_LOOKS):
            if self._seen is None or self._seen.slowed:
                self._seen = self._look(self._device.info.uuid)
            if self._seen is None or not self._seen.slowed:
                break
            self._pause(COOL_S / COOL_LOOKS)
        return self._seen

    def _slope_wanted(self, label: str, log: ShapeLog, sides: Sequence[str]) -> float | None:
        """The expected time of a call where slopes are still wanted: in the first round, and as long as one of them
        disagrees with the events."""
        good = bool(log.rounds) and all(
            side in log.slopes and not too_fast(log.us(side), log.slopes[side]) for side in sides)
        expected = self._shapes[label].expected_us
        if expected is None and log.rounds:
            expected = max(log.us(side) for side in sides)
        return None if good else expected

    def _ask(self, label: str, pairs: int, slope: float | None, sides: Sequence[str]
             ) -> tuple[RoundRequest, RoundResult]:
        info, shape = self._device.info, self._shapes[label]
        handles = {side: self._handles[label][side] for side in sides}
        closeness.settle([shape], self._relative)  # nothing to do where the bench did it before it took the device
        request = shape.round(self._factors, handles, pairs, l2_bytes=info.l2_bytes, memory_bytes=info.memory_bytes,
                              slope_us=slope, trusted=self._trusted)
        try:
            result = self._device.round(request, timeout_s=ROUND_S)
        except PlanRefused as refusal:  # plans were accepted before, so it is what was asked that does not fit
            raise InfrastructureError(f"The launcher refused a timing round on {label}: {refusal.text}") from refusal
        except DeviceFault as fault:
            fault.where = label
            raise
        _ensure_sensible(request, result)
        self._ensure_unwritten(label, result)
        self._ensure_within(label, result)
        self._ensure_punctual(label, result)
        return request, result

    def _ensure_unwritten(self, label: str, result: RoundResult) -> None:
        """Inputs are read-only under the clock, too. Who wrote to one is known before kept inputs are looked at."""
        if not result.written:
            return
        side, number = self._first_own(result.written)
        if side not in self._own:
            text = f"it wrote to its input on {label}, although it was verified before."
            raise opponent_failed(side, CandidateFault(Fault(Outcome.POLICY_VIOLATION, "input_written", text)))
        text = (f"The kernel wrote to its input in sample {number + 1} on {label}, when it was timed. Inputs are "
                "read-only; write to outputs or scratch.")
        raise Refused(Outcome.POLICY_VIOLATION, Reason("input_written", self._stage, text, case=label))

    def _ensure_within(self, label: str, result: RoundResult) -> None:
        """What surrounds an array under the clock is what surrounds it in a single call, and as forbidden."""
        if not result.strayed:
            return
        side, number = self._first_own(result.strayed)
        if side not in self._own:
            text = f"it wrote outside its arrays on {label}, although it was verified before."
            raise opponent_failed(side, CandidateFault(Fault(Outcome.OUT_OF_BOUNDS, "guard_broken", text)))
        text = (f"The kernel wrote outside its arrays in sample {number + 1} on {label}, when it was timed. Check "
                "masks and loop bounds.")
        raise Refused(Outcome.OUT_OF_BOUNDS, Reason("guard_broken", self._stage, text, case=label))

    def _first_own(self, found: Sequence[tuple[str, int]]) -> tuple[str, int]:
        """The first of these sides and sweeps that is the candidate's, else the first."""
        return next((one for one in found if one[0] in self._own), found[0])

    def _ensure_punctual(self, label: str, result: RoundResult) -> None:
        if not result.late:
            return
        side, number = self._first_own(result.late)
        if side not in self._own:
            raise InfrastructureError(f"Outputs of the {side} kernel changed after its time was taken on {label}; "
                                      "evaluate that kernel afresh. Nothing was recorded against the candidate.")
        text = (f"Outputs on {label} changed after the end of sample {number + 1} was marked: work is done outside the "
                "clock. All work of a call has to be over when its last launch ends.")
        raise Refused(Outcome.REWARD_HACK, Reason("late_write", self._stage, text, case=label))

    def verify(self, least: int = LEAST_VERIFIED) -> int:
        """Verify some of what was kept, chosen now, at least ``least`` of every shape, and decide about what differs
        from the trusted side's outputs; how many samples of the former. The device is not needed for it.

        Raises:
            Refused: a timed call of the candidate left a wrong result.
            InfrastructureError: the trusted side did.
        """
        chosen = [one for log in self.logs.values() for one in choose(log.left, self._random, least)]
        verify(chosen, self._factors.values, self._stage, self._relative)
        decide([one for log in self.logs.values() for one in log.apart], self._factors.values, self._stage,
               self._trusted, own=self._trusted in self._own, relative=self._relative, ensure_time=self._ensure_time)
        return len(chosen)

    def samples(self, roles: Mapping[str, str], control: str) -> Samples:
        """See ``log.samples_of``."""
        return samples_of(self._shapes, self.logs, self.first_us, roles, control)


def measure(device: Device, spec: OperatorSpec, point: ShapePoint, sides: Mapping[str, Call], *, rounds: int = 5,
            pairs: int = 20, seed: int | None = None, workload: Workload | None = None, dtype: str | None = None,
            shape: Shape | None = None, source: random.Random | None = None,
            look: Callable[[str], nvml.Reading | None] = nvml.read) -> Samples:
    """A session on one shape without an evaluation: ``sides`` has ``candidate`` and others, which are the roles of the
    samples; the first of them is doubled as the A/A control, and the candidate's outputs are compared with its.

    ``workload`` (the operator's first by default) gives regimes and dtype. ``shape`` is a prepared one to use again;
    its contents are still new in every sample. Timed outputs are verified as in an evaluation.

    Raises:
        Refused: a timed call of the candidate left a wrong result or a late one.
    """
    chosen = workload or next(iter(spec.workloads.values()))
    draw = source or random.Random(secrets.randbits(64))
    secret = secrets.randbits(128) if seed is None else seed
    others = [name for name in sides if name != CANDIDATE]
    control = others[0] if others else CANDIDATE
    factors = Factors(secret, "measure")
    own = shape or Shape(spec, point, dtype=dtype or next(iter(chosen.dtypes.values())),
                         regimes=chosen.regimes_of(point), seed=secret, source=draw, stage="measure")
    try:
        session = Session(device, {point.label: own}, factors, stage=Stage.RECHECK, source=draw, look=look,
                          trusted=control if others else AGAIN)
        kernels = {name: Kernel({point.label: call}) for name, call in sides.items()}
        session.load({**kernels, AGAIN: kernels[control]})
        if shape is None or own.expected_us is None:
            session.estimate()
        session.rounds(rounds, {point.label: pairs}, slopes=False)
        session.verify()
        return session.samples({name: name for name in others}, control)
    finally:
        factors.close()
        if shape is None:
            own.close()


def _ensure_sensible(request: RoundRequest, result: RoundResult) -> None:
    """A figure for every side and sweep, all of them finite and above zero; slopes where they were asked for."""
    sweeps = len(request.sweeps)
    whole = (set(result.us) == set(request.sides) and len(result.mhz) == sweeps and len(result.kept) == sweeps
             and all(len(values) == sweeps for values in result.us.values())
             and all(math.isfinite(us) and us > 0 for values in result.us.values() for us in values)
             and (not request.slope or set(result.judged) == set(result.slope) == set(request.sides)))
    if not whole:
        raise InfrastructureError("The launcher's answer to a timing round lacks figures or holds impossible ones. "
                                  "Nothing was concluded; evaluate again.")
