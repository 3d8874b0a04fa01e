"""``manage.py engine``: moves campaigns on, sweeps the gate, keeps the git mirror."""

from __future__ import annotations

import logging
import signal
from typing import Any

from django.conf import settings
from django.core.management import CommandError
from django.core.management.base import BaseCommand

from apps.bridge.runner.closing import ClosingErrand
from apps.bridge.runner.engine_loop import EngineLoop, Errand
from apps.bridge.runner.errands import MirrorErrand, beat, canary, recheck, sweep
from apps.bridge.runner.site import CannotServe, hold_lock
from apps.campaigns.jobs.workers import worker_gone
from apps.reviews.services import gate_prepare

log = logging.getLogger(__name__)


class Command(BaseCommand):
    """One per installation on SQLite; leases let several share the campaigns."""

    requires_system_checks = ()  # pages and forms are no business of this process
    help = "Run the campaigns: engine steps, agents, the gate's sweep, the git mirror."

    def handle(self, *args: Any, **options: Any) -> None:
        """Work until SIGTERM or Ctrl-C."""
        try:
            lock = hold_lock(settings.VAR_DIR / "run" / "engine.lock", "The engine")
        except CannotServe as problem:
            raise CommandError(str(problem)) from problem
        errands = [
            Errand("reporting itself", 3.0, beat),
            Errand("sweeping the gate", 1.0, sweep),
            Errand("reading the canary", 2.0, canary),
            Errand("closing finished campaigns", 2.0, ClosingErrand()),
            Errand("checking champions", 60.0, recheck),
            Errand("mirroring promotions", 2.0, MirrorErrand(settings.VAR_DIR / "mirror")),
        ]
        if settings.DEMO:
            from apps.bridge.runner.demo.director import Director
            from apps.bridge.runner.demo.reports import FOLDER, ReportsErrand

            errands.append(Errand("running the demo", 1.0, Director()))
            errands.append(Errand("importing shipped reports", 60.0, ReportsErrand(settings.BASE_DIR / FOLDER)))
        loop = EngineLoop(errands=errands)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: loop.stopping.set())
        with lock:
            for name in gate_prepare():
                log.error("The gate's trigger %s does not stand; promotions wait. Run manage.py migrate.", name)
            loop.run()
            worker_gone(name="engine", reason="It was asked to end.")
