"""The reports that ship with the program, imported in the background at the first start of the demo."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field
from pathlib import Path

from django.db import connection

from apps.bridge import api
from apps.core.errors import AppError
from apps.imports.services import report_import

FOLDER = "benchmarks/h200"
log = logging.getLogger(__name__)


def committed(folder: Path) -> list[Path]:
    """Files of the checkout that are reports; other measurements lie beside them."""
    return [path for path in sorted(folder.glob("*.json")) if api.is_report(path.read_bytes())]


def import_committed(folder: Path) -> None:
    """Import what is not imported yet; a file that is refused is named and left out."""
    for path in committed(folder):
        try:
            row, new = report_import(data=path.read_bytes(), file=path.name, by=None)
        except AppError as refusal:
            log.warning("Demo: %s was not imported: %s", path, refusal.text)
        else:
            if new:
                log.info("Demo: %s is imported as %s, %d boards.", path, row, row.boards.count())


@dataclass
class ReportsErrand:
    """Starts the import once, in a thread of its own: it resamples for seconds, and the engine must not wait for it."""

    folder: Path
    thread: threading.Thread | None = field(default=None)

    def __call__(self) -> None:
        """Begin at the first call."""
        if self.thread is None:
            self.thread = threading.Thread(target=self._work, name="demo-reports", daemon=True)
            self.thread.start()

    def _work(self) -> None:
        try:
            import_committed(self.folder)
        except Exception:
            log.exception("Demo: the shipped reports could not be imported; `manage.py import_results` says more.")
        finally:
            connection.close()
