"""``manage.py doctor``: what the site needs, tried; then everything that the harness needs."""

from __future__ import annotations

import os
import subprocess
import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.checks import run_checks
from django.core.management.base import BaseCommand
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from apps.campaigns.jobs.selectors import workers


class Command(BaseCommand):
    """Exit 0 when nothing but optional things is missing, 2 otherwise."""

    help = "Try what the site and the harness need here, and say how to mend each gap."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Options."""
        parser.add_argument("--site-only", action="store_true", help="leave out the harness's own trials")

    def handle(self, *args: Any, site_only: bool, **options: Any) -> None:
        """Print one line per check."""
        gaps = [self._say(*check) for check in (_folder(), *_database(), *_checks(), *_workers())].count(False)
        code = 0
        if not site_only:
            self.stdout.flush()
            code = subprocess.run(
                [sys.executable, "-m", "harness", "doctor"], cwd=settings.BASE_DIR,
                env={**os.environ, "KERNELOPT_VAR": str(settings.VAR_DIR)}, check=False).returncode
        if gaps or code:
            sys.exit(2)

    def _say(self, name: str, ok: bool, text: str, remedy: str = "") -> bool:
        self.stdout.write(f"{'ok  ' if ok else 'GAP '} {name}: {text}")
        if not ok and remedy:
            self.stdout.write(f"     to do: {remedy}")
        return ok


Finding = tuple[str, bool, str, str]


def _folder() -> Finding:
    """The folder for everything written can be written."""
    probe = settings.VAR_DIR / ".doctor"
    try:
        probe.write_text("x")
        probe.unlink()
    except OSError as error:
        return ("folder", False, f"{settings.VAR_DIR} cannot be written: {error}.",
                "Make it writable, or name another one in KERNELOPT_VAR.")
    return "folder", True, f"{settings.VAR_DIR} can be written", ""


def _database() -> list[Finding]:
    """The database answers and its migrations are applied."""
    try:
        executor = MigrationExecutor(connection)
        missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except DatabaseError as error:
        remedy = "Check KERNELOPT_DATABASE_URL or KERNELOPT_SQLITE."
        return [("database", False, f"it does not answer: {error}.", remedy)]
    text = f"{connection.vendor}, migrations applied" if not missing else f"{len(missing)} migrations are missing"
    return [("database", not missing, text, "Run `python manage.py migrate` (serve does it at every start).")]


def _checks() -> list[Finding]:
    """Django's own checks with the gate's triggers."""
    try:
        found = run_checks(databases=["default"])
    except DatabaseError as error:
        return [("checks", False, str(error), "Run `python manage.py migrate`.")]
    serious = [check for check in found if check.level >= 30]
    if not serious:
        return [("checks", True, "settings, models and the gate's triggers stand", "")]
    return [(check.id or "check", False, str(check.msg), str(check.hint or "")) for check in serious]


def _workers() -> list[Finding]:
    """Engine and worker, where they ever ran."""
    try:
        known = workers()
    except DatabaseError:
        return []
    remedy = "Start the site with `make run`; it keeps both running."
    return [(status.worker.name, status.up, "up" if status.up else f"not running. {status.worker.note}".strip(), remedy)
            for status in known if status.worker.kind in ("engine", "evalworker")]
