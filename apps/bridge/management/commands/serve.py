"""``manage.py serve``: everything on one machine: pages, engine and evaluation worker, kept running."""

from __future__ import annotations

import os
import sys
import time
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management import CommandError, call_command
from django.core.management.base import BaseCommand
from django.db import DatabaseError, connection

from apps.bridge.runner.keys import key_names
from apps.bridge.runner.preparation import prepare
from apps.bridge.runner.site import LOOPBACK, CannotServe, answers, check_port, child_specs, hold_lock
from apps.bridge.runner.supervisor import Supervisor
from apps.campaigns.jobs.models import Worker
from apps.campaigns.jobs.workers import worker_gone


class Command(BaseCommand):
    """Checks, migrates, seeds what is missing, then supervises the children until Ctrl-C."""

    help = "Serve the site with its engine and evaluation worker; ends everything on Ctrl-C."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Options."""
        parser.add_argument("--port", type=int, default=8000)
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
        parser.add_argument("--demo", action="store_true",
                            help="a demo team with one-click people and campaigns run here; loopback only")

    def handle(self, *, port: int, host: str, demo: bool, **options: Any) -> None:
        """Serve until asked to stop."""
        began = time.monotonic()
        demo = demo or settings.DEMO
        if demo and host not in LOOPBACK:
            raise CommandError(f"The demo signs people in by one click, so it serves this machine only, not {host}. "
                               "Leave out --demo or --host.")
        os.environ["KERNELOPT_DEMO"] = str(int(demo))
        os.environ["KERNELOPT_SITE_URL"] = f"http://{host}:{port}"
        settings.DEMO = demo
        try:
            lock = hold_lock(settings.VAR_DIR / "run" / "serve.lock", "KernelOpt")
            check_port(host, port)
        except CannotServe as problem:
            raise CommandError(str(problem)) from problem
        with lock:
            call_command("migrate", interactive=False, verbosity=0)
            for warning in prepare(demo=demo):
                self._say(f"Note: {warning}")
            self._supervise(f"http://{host}:{port}/", host, port, began)
        self._say("Stopped. Everything written so far is kept; campaigns go on where they were at the next start.")

    def _supervise(self, url: str, host: str, port: int, began: float) -> None:
        ready = False

        def announce() -> None:
            nonlocal ready
            if not ready and supervisor.children[0].up and answers(url + "health/"):
                ready = True
                self._say(f"\n  KernelOpt is ready after {time.monotonic() - began:.1f} s:  {url}\n"
                          "  Ctrl-C ends it.\n")

        supervisor = Supervisor(specs=child_specs(host=host, port=port, manage=settings.BASE_DIR / "manage.py"),
                                folder=settings.BASE_DIR, state_file=settings.VAR_DIR / "run" / "serve.json",
                                say=self._say, on_end=self._announce_end,
                                key_names=lambda: key_names(settings.ENDPOINTS_PATH))
        supervisor.run(on_tick=announce)

    def _announce_end(self, kind: str, how: str) -> None:
        """Tell open pages; the children themselves report their return."""
        try:
            for row in Worker.objects.filter(kind=kind.partition(":")[0]):
                owner = row.owner()
                if owner is not None and owner.alive() is False:  # the other devices' workers go on
                    worker_gone(name=row.name, reason=how)
        except DatabaseError as error:
            self._say(f"The end of {kind} could not be written: {error}")
        finally:
            connection.close()

    def _say(self, text: str) -> None:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
