"""Reading kernel files for the commands."""

from __future__ import annotations

from pathlib import Path

from harness.domain.errors import UsageError
from harness.domain.files import read_regular
from harness.evaluation.source.intake import MAX_BYTES

ADVICE = "Give the path of a kernel file."
MOST_BYTES = 16 * MAX_BYTES
"""More than a kernel may have: up to here the static stage says what is wrong."""


def read_kernel(path: Path) -> str:
    """The text of a kernel file, unchanged; whether it can be a kernel is for the static stage to say.

    Raises:
        UsageError: the file is missing, is no regular file, is far too large, or its bytes are not text.
    """
    data = read_regular(path, MOST_BYTES, ADVICE)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: byte {error.start} is not UTF-8. Save the file as UTF-8 and run again.") from error
