"""``manage.py evalworker``: takes evaluations from the queue for the device of this machine."""

from __future__ import annotations

import os
import shlex
import signal
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management import CommandError
from django.core.management.base import BaseCommand

from apps.bridge import api
from apps.bridge.runner.evaluator import Evaluator
from apps.bridge.runner.idle import IdleWork
from apps.bridge.runner.processes import adopt_orphans, end_orphans
from apps.bridge.runner.site import CannotServe, hold_lock, worker_name
from apps.bridge.runner.worker import EvaluationWorker
from apps.campaigns.jobs.workers import worker_beat, worker_gone

COMMAND = "KERNELOPT_EVALUATE_COMMAND"
"""Environment variable with another evaluator command line; tests of the machinery use it."""


class Command(BaseCommand):
    """One per device and lane; a second one refuses to start while the first lives.

    A GPU may have several lanes: each takes jobs of its own, records and compiles on processors, and waits for the
    machine's lock where kernels run. The first one also does what is due while nobody waits (self-tests, the doctor).
    """

    requires_system_checks = ()  # pages and forms are no business of this process
    help = "Evaluate kernels from the queue on this machine's device."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Options."""
        parser.add_argument("--hardware", default="", help="a GPU of this machine (default: its CPU)")
        parser.add_argument("--lane", type=int, default=1, help="which of a GPU's workers (default: the first)")

    def handle(self, *args: Any, hardware: str = "", lane: int = 1, **options: Any) -> None:
        """Work until SIGTERM or Ctrl-C."""
        device = _device(hardware)
        hardware, backends = device.name, list(device.backends)
        if lane < 1 or (lane > 1 and not hardware.startswith("nvidia-")):
            raise CommandError(f"{hardware} has one lane: a CPU is timed by the worker that has it alone.")
        name = worker_name(hardware, lane)
        place = hardware if lane == 1 else f"{hardware}-{lane}"
        try:
            lock = hold_lock(settings.VAR_DIR / "run" / f"device-{place}.lock", f"A worker of {hardware}, lane {lane},")
        except CannotServe as problem:
            raise CommandError(str(problem)) from problem

        def beat(verdict: dict[str, Any] | None) -> bool:
            facts: dict[str, Any] = {}
            # A candidate refused before anything ran says nothing about the walls.
            if verdict is not None and verdict["evaluator"]["isolation"]["proved"]:
                isolation = verdict["evaluator"]["isolation"]
                facts = {"isolation": isolation["level"], "proved": isolation["proved"],
                         "environment": verdict["environment"]}
            row = worker_beat(name=name, kind="evalworker", hardware=hardware, backends=backends,
                              evaluator_version=api.evaluator_version(), **facts)
            return not row.draining

        adopt_orphans()
        other = shlex.split(os.environ.get(COMMAND, ""))
        evaluator = Evaluator(project=settings.BASE_DIR, command=other or None, on_closed=end_orphans)
        worker = EvaluationWorker(evaluator=evaluator, hardware=hardware, backends=backends, beat=beat)
        if not other and lane == 1:  # a stand-in says nothing about the real evaluator
            idle = IdleWork(project=settings.BASE_DIR, var=settings.VAR_DIR, report=worker.report,
                            stopping=worker.stopping.is_set, hardware=hardware, backend=backends[0])
            worker.when_idle, worker.when_busy = idle, idle.busy
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: worker.stopping.set())
        with lock:
            worker.run()
            worker_gone(name=name, reason="It was asked to end.")


def _device(asked: str) -> api.DeviceFacts:
    """The device that this worker serves.

    Raises:
        CommandError: this machine has no such device.
    """
    known = api.devices_here()
    found = next((device for device in known if asked in ("", device.name)), None)
    if found is None:
        raise CommandError(f"This machine has no {asked}. Its devices: {', '.join(device.name for device in known)}.")
    return found
