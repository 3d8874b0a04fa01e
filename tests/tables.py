"""Databases that begin with every table instead of running every migration once more.

``scripts/test`` migrates one SQLite file before the tests begin and names it in ``TESTS_BEGIN_WITH``. Without it, as
where a few tests are run by hand, every database is migrated from nothing.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

VARIABLE = "TESTS_BEGIN_WITH"


def begin_with_tables(path: Path) -> bool:
    """Put the migrated file at ``path``; whether there is one."""
    made = os.environ.get(VARIABLE)
    if not made:
        return False
    shutil.copyfile(made, path)
    return True
