"""A worker whose candidate never runs anywhere: its plans are recorded in the sandbox and run on the device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.backends.triton import planning
from harness.backends.triton.device import faults
from harness.backends.triton.device.documents import documents_of
from harness.backends.triton.device.holding import Holding
from harness.backends.triton.device.plans import Plans, Prepared
from harness.backends.triton.launcher.client import Device, DeviceFault, PlanRefused
from harness.backends.triton.launcher.requests import CallOutcome
from harness.domain.errors import InfrastructureError
from harness.evaluation.ports import Announced, CallReport, CandidateFault, Lent, LoadReport
from harness.operators.base import Argument

CALL_S = 10.0
"""Seconds that one call may take on the device, transfers included."""


class DeviceWorker:
    """Implements ``ports.PlanReplayer``. The launcher holds this candidate alone, for all stages that call it; after a
    fault it is replaced."""

    def __init__(
        self, plans: Plans, holding: Holding, arguments: Sequence[Argument], *, call_s: float = CALL_S
    ) -> None:
        """``arguments`` of the operator, in signature order; ``call_s`` bounds one call."""
        self._plans, self._holding, self._arguments, self._call_s = plans, holding, arguments, call_s
        self._handles: dict[int, int] = {}  # by identity of what was prepared, within one launcher
        self._launcher: Device | None = None
        self._closed = False

    def load(self, source: str) -> LoadReport:
        """Import the candidate in a sandbox. See ``ports.Worker.load``."""
        self._ensure_open()
        return LoadReport(seconds=self._plans.load(source))

    def prepare(self, calls: Sequence[Announced]) -> None:
        """Record and compile ``calls``, in parallel; the device is not held meanwhile, but a launcher starts. Raises
        nothing of the candidate's but a failed import: its faults come up with the call."""
        self._ensure_open()
        self.rest()
        self._holding.warm()
        self._plans.prepare([(documents_of(self._arguments, call), call.attributes) for call in calls])

    def call(self, lent: Sequence[Lent], attributes: Mapping[str, float]) -> CallReport:
        """Run the call's plan once on ``lent``. See ``ports.Worker.call``; nothing of a candidate runs afterwards."""
        return self._run(lent, attributes, None)

    def call_without(self, lent: Sequence[Lent], attributes: Mapping[str, float], launch: int) -> CallReport:
        """``call`` without one launch. See ``ports.PlanReplayer``."""
        return self._run(lent, attributes, launch)

    def launches(self, lent: Sequence[Lent], attributes: Mapping[str, float]) -> tuple[str, ...]:
        """Names of the kernel functions that a call launches. Raises ``CandidateFault``."""
        return self.prepared(lent, attributes).launches

    def prepared(self, lent: Sequence[Lent], attributes: Mapping[str, float]) -> Prepared:
        """Plan and binaries of a call, for another launcher than this worker's. Raises ``CandidateFault``."""
        return self._plans.get(planning.lent_documents(lent), attributes)

    def rest(self) -> None:
        """Let others have the device until the next call; the launcher waits for it."""
        self._holding.pause()

    def close(self) -> None:
        """End launcher and sandboxes; idempotent."""
        self._closed = True
        self._holding.release()
        self._plans.close()

    def _run(self, lent: Sequence[Lent], attributes: Mapping[str, float], drop: int | None) -> CallReport:
        self._ensure_open()
        prepared = self.prepared(lent, attributes)
        outcome = self._on_device(prepared, lent, drop)
        if outcome.changed:
            raise CandidateFault(faults.written(outcome.changed))
        return CallReport(seconds=outcome.seconds, scratch_bytes=planning.scratch_bytes(prepared.plan))

    def _on_device(self, prepared: Prepared, lent: Sequence[Lent], drop: int | None) -> CallOutcome:
        handle, device = self._loaded(prepared)
        try:
            return device.call(handle, lent, drop=drop, timeout_s=self._call_s)
        except PlanRefused as error:  # validated before, so it is what was lent that does not fit
            raise InfrastructureError(f"The launcher refused the memory lent to it: {error.text}") from error
        except DeviceFault as error:
            raise self._after(error) from error

    def _loaded(self, prepared: Prepared) -> tuple[int, Device]:
        device = self._holding.device()
        if device is not self._launcher:
            self._launcher, self._handles = device, {}
        handle = self._handles.get(id(prepared))
        if handle is None:
            try:
                handle = device.load(prepared.plan, prepared.binaries)
            except PlanRefused as error:
                raise CandidateFault(faults.refused(error)) from error
            except DeviceFault as error:
                raise self._after(error) from error
            self._handles[id(prepared)] = handle
        return handle, device

    def _after(self, error: DeviceFault) -> CandidateFault:
        """The candidate's fault, once a fresh launcher has shown that the device is well."""
        if error.dead:
            self._holding.renew()
        return CandidateFault(faults.failed(error))

    def _ensure_open(self) -> None:
        if self._closed:
            raise InfrastructureError("This device worker was closed already; open another one.")
