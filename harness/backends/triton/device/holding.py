"""The device, held for one evaluation only while kernels of it run: the machine's lock, the launcher, and the time.

The lock covers loading and calling: from ``device`` to ``pause`` or ``release``. It covers neither a launcher's start
(``warm``: half a second in which no kernel runs) nor a launcher that waits between two stages. The clock takes no other
evaluation's launcher for company (``nvml.strangers``), because whoever holds the lock knows it to be idle.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from harness.backends.triton.launcher.client import Device
from harness.domain.errors import InfrastructureError
from harness.evaluation.run import Run
from harness.hardware import exclusive

LOCK_S = 600.0
"""Seconds to wait for another evaluation on the same device."""
HELD = "device_held_s"
BY_STAGE = "device_held_by_stage_s"
"""Entries of ``run.clocks``: seconds that this evaluation kept the device from others, in all and per stage."""


class Holding:
    """A launcher on the run's device and the lock that goes with it.

    The wait for the lock is not charged to the candidate's deadline.
    """

    def __init__(self, run: Run, start: Callable[[], Any] | None = None) -> None:
        """Nothing is held yet. ``start`` makes a launcher, ``run.open_device`` where it is not given."""
        self._run = run
        self._start = start or run.open_device
        self._lock: contextlib.ExitStack | None = None
        self._device: Device | None = None
        self._starting: Future[Any] | None = None
        self._since = 0.0
        self._stage = ""

    @property
    def held(self) -> bool:
        """Whether this evaluation keeps the device from others now."""
        return self._lock is not None

    def warm(self) -> None:
        """Start a launcher in the background where there is none; what fails is raised by ``device``."""
        if self._device is None and self._starting is None and self._start is not None:
            pool = ThreadPoolExecutor(1)
            self._starting = pool.submit(self._start)
            pool.shutdown(wait=False)

    def device(self) -> Device:
        """The launcher with the lock on its device, started where none runs.

        Raises:
            InfrastructureError: the device was not free in time, or no launcher starts.
        """
        self.reserve()
        if self._device is None:
            self._device = self._open()
        return self._device

    def reserve(self) -> None:
        """Keep others off the device without a launcher, for another process of this evaluation that uses it.

        Raises:
            InfrastructureError: it was not free in time.
        """
        self._account()
        if self._lock is None:
            self._acquire()

    def renew(self) -> None:
        """After a fault: end the launcher, start another and see whether the device still computes.

        Raises:
            InfrastructureError: it does not; nobody's candidate is to blame for what follows.
        """
        self._end_launcher()
        device = self.device()
        if not device.healthy():
            self.release()
            raise InfrastructureError(
                f"After a fault {self._run.device} does not compute what it should, in a fresh process. Nothing more "
                "was judged; check the device (python -m harness doctor) and evaluate again."
            )

    def pause(self) -> None:
        """Let others have the device until the next call of ``device``; the launcher stays, idle."""
        self._unlock()

    def release(self) -> None:
        """End the launcher and let others have the device; idempotent."""
        self._end_launcher()
        self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            self._account()
            self._lock.close()
            self._lock = None

    def _acquire(self) -> None:
        run = self._run
        stack = contextlib.ExitStack()
        asked = time.monotonic()
        stack.enter_context(exclusive.device(str(run.device), LOCK_S, self._waiting))
        run.deadline += time.monotonic() - asked
        self._lock, self._since, self._stage = stack, time.monotonic(), str(run.stage)

    def _waiting(self) -> None:
        self._run.progress(self._run.stage, 0, 1, f"waiting for another evaluation on {self._run.device}")

    def _open(self) -> Device:
        if self._start is None:
            raise InfrastructureError("This evaluation has no launcher to judge on a device with.")
        starting, self._starting = self._starting, None
        try:
            return self._start() if starting is None else starting.result()
        except BaseException:
            self.release()
            raise

    def _end_launcher(self) -> None:
        starting, self._starting = self._starting, None
        if starting is not None and starting.exception() is None:
            starting.result().close()
        if self._device is not None:
            self._device.close()
            self._device = None

    def _account(self) -> None:
        """Charge the time since the last look to the stage that ran then."""
        if self._lock is None:
            return
        now, clocks = time.monotonic(), self._run.clocks
        stages = clocks.setdefault(BY_STAGE, {})
        stages[self._stage] = round(stages.get(self._stage, 0.0) + now - self._since, 4)
        clocks[HELD] = round(sum(stages.values()), 4)
        self._since, self._stage = now, str(self._run.stage)


@contextlib.contextmanager
def hold(run: Run, start: Callable[[], Any] | None = None) -> Iterator[Any]:
    """A launcher for the length of a ``with`` block; its time is added to ``run.clocks``. See ``Holding``."""
    holding = Holding(run, start)
    try:
        yield holding.device()
    finally:
        holding.release()
