"""Imports a made-up report into the database of a site under test; prints its number. Run with that site's
environment."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import django


def imported() -> int:
    """The report's number."""
    from apps.imports.services import report_import
    from tests.apps.imports.report_world import as_file, report

    row, _ = report_import(data=as_file(report("softmax", "rms_norm")), file="report.json", by=None)
    return int(row.pk)


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kernelopt_site.settings.base")
    sys.path.insert(0, str(Path.cwd()))
    django.setup()
    sys.stdout.write(f"{imported()}\n")
