"""Reading kernel files for the commands."""

from __future__ import annotations

from pathlib import Path

from harness.domain.errors import SourceError, UsageError
from harness.evaluation.source.intake import read_source


def read_kernel(path: Path) -> str:
    """The text of a kernel file.

    Raises:
        UsageError: the file is missing, or its bytes cannot be a kernel.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}. Give the path of a kernel file.") from error
    try:
        return read_source(data)
    except SourceError as error:
        where = f"{path}:{error.line}" if error.line else str(path)
        raise UsageError(f"{where}: {error.text}", code=error.code) from error
