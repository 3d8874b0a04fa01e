"""Reading kernel files for the commands."""

from __future__ import annotations

from pathlib import Path

from harness.domain.errors import UsageError


def read_kernel(path: Path) -> str:
    """The text of a kernel file, unchanged; whether it can be a kernel is for the static stage to say.

    Raises:
        UsageError: the file is missing, or its bytes are not text.
    """
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}. Give the path of a kernel file.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: byte {error.start} is not UTF-8. Save the file as UTF-8 and run again.") from error
