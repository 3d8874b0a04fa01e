"""``manage.py import_results FILE...``: load reports of ``python -m harness report`` into the dashboard."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.core.errors import Invalid
from apps.core.figures import counted
from apps.imports.services import report_import
from apps.teams.models import User


class Command(BaseCommand):
    """Marked as imported for good: boards of their own, and evidence for nothing here. Importing again changes
    nothing."""

    help = "Import reports measured elsewhere; they get boards of their own and are evidence for no promotion."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Options."""
        parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
        parser.add_argument("--by", default="", metavar="USERNAME", help="who imports, for the audit trail")

    def handle(self, *, files: list[Path], by: str, verbosity: int, **options: Any) -> None:
        """Import every file, or say what is wrong with the first bad one; those before it stay imported."""
        person = User.objects.filter(username=by, is_active=True).first() if by else None
        if by and person is None:
            raise CommandError(f"There is no active account '{by}'.")

        def say(text: str) -> None:
            if verbosity > 1:
                self.stdout.write(f"  {text}")

        for path in files:
            try:
                row, new = report_import(data=path.read_bytes(), file=path.name, by=person, on_progress=say)
            except OSError as error:
                raise CommandError(f"{path} could not be read: {error.strerror}.") from error
            except Invalid as error:
                where = f" ({error.key})" if error.key else ""
                raise CommandError(f"{path}{where}: {error.text}") from error
            told = f"{counted(row.boards.count(), 'operator')} on {row.hardware}, measured {row.measured_at:%Y-%m-%d}"
            self.stdout.write(f"{path}: {told}: {'imported' if new else 'imported before, nothing changed'}.")
