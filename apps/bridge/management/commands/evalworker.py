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
from apps.bridge.runner.site import CannotServe, hold_lock
from apps.bridge.runner.worker import EvaluationWorker
from apps.campaigns.jobs.workers import worker_beat, worker_gone

COMMAND = "KERNELOPT_EVALUATE_COMMAND"
"""Environment variable with another evaluator command line; tests of the machinery use it."""


class Command(BaseCommand):
    """One per device; a second one refuses to start while the first lives."""

    requires_system_checks = ()  # pages and forms are no business of this process
    help = "Evaluate kernels from the queue on this machine's device."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Options."""
        parser.add_argument("--hardware", default="", help="a GPU of this machine (default: its CPU)")

    def handle(self, *args: Any, hardware: str = "", **options: Any) -> None:
        """Work until SIGTERM or Ctrl-C."""
        device = _device(hardware)
        hardware, backends = device.name, list(device.backends)
        name = f"evalworker:{hardware}"
        try:
            lock = hold_lock(settings.VAR_DIR / "run" / f"device-{hardware}.lock", f"A worker of {hardware}")
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
        if not other:  # a stand-in says nothing about the real evaluator
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
