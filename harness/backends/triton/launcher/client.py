"""The judge's side of a launcher process: start it, load compiled plans, call them, time them, end it.

The launcher imports neither Triton nor torch and never sees candidate code, but kernels run in its context: it is
disposable. A fault of a kernel ends it (``DeviceFault.dead``); the caller closes it and starts another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from harness.backends.triton.launcher.binary import Binary
from harness.backends.triton.launcher.refused import PlanRefused
from harness.backends.triton.launcher.requests import CallOutcome, DeviceInfo, RoundRequest, RoundResult
from harness.domain.plan import LaunchPlan
from harness.evaluation.ports import Lent


class DeviceFault(Exception):
    """A kernel failed on the device. ``code``: ``illegal_address``, ``misaligned_address``, ``launch_failed``,
    ``too_large`` (a cooperative grid that does not fit), ``timeout``, ``out_of_memory``, ``launcher_died``. ``dead``:
    the process is of no more use. ``where``: the shape whose round it ended."""

    def __init__(self, code: str, text: str, *, dead: bool = True) -> None:
        super().__init__(text)
        self.code, self.text, self.dead = code, text, dead
        self.where: str | None = None


class Device(Protocol):
    """A running launcher. Not safe for use by several threads."""

    info: DeviceInfo

    def load(self, plan: LaunchPlan, binaries: Sequence[Binary]) -> int:
        """Validate everything about a plan and load its binaries; the handle for ``call`` and ``round``.

        Raises:
            PlanRefused: before anything ran.
        """
        ...

    def call(
        self, handle: int, lent: Sequence[Lent], *, drop: int | None = None, timeout_s: float = 10.0
    ) -> CallOutcome:
        """Upload the memory files whole (guard bands included), run the plan once, download every file of an output.

        Scratch is poisoned. ``drop`` leaves one launch out (its number among the launches).

        Raises:
            PlanRefused: the lent arrays are not those that the plan was recorded for.
            DeviceFault: a kernel failed or did not end within ``timeout_s``.
        """
        ...

    def round(self, request: RoundRequest, *, timeout_s: float = 30.0) -> RoundResult:
        """Time one shape; see ``RoundRequest``.

        Raises:
            DeviceFault: a kernel failed or the round did not end in time.
        """
        ...

    def healthy(self) -> bool:
        """Run the launcher's own small kernel on fresh memory and check what it computes."""
        ...

    def close(self) -> None:
        """Kill the process; idempotent."""
        ...

    def roofs(self) -> Mapping[str, float]:
        """Measured ``copy`` (bytes read plus written) and ``read`` rates of the device's memory, bytes per second."""
        ...


__all__ = ["Device", "DeviceFault", "PlanRefused"]
