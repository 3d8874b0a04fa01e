"""Reading files that somebody names: regular ones of a bounded size, and documents that are no trap for readers."""

from __future__ import annotations

import math
import os
import stat
from pathlib import Path
from typing import Any

from harness.domain import strict_json
from harness.domain.errors import UsageError

MAX_DOCUMENT_BYTES = 64 << 20
"""The largest reports have a few megabytes."""
MOST_DIGITS = 40
MAX_DEPTH = 64
"""Levels of lists and objects in each other. No document of the harness has a third of it."""


def read_document(path: Path, what: str, advice: str) -> Any:
    """The JSON document in a file; ``what`` begins the sentences ("The request"), ``advice`` ends them.

    Raises:
        UsageError: the file cannot be read, or holds no JSON, numbers that JSON does not have, or more than
            ``MAX_DEPTH`` levels.
    """
    data = read_regular(path, MAX_DOCUMENT_BYTES, advice, what)
    try:
        document = strict_json.loads(data.decode("utf-8"), parse_float=_finite, parse_int=_whole)
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise UsageError(f"{what} {path} cannot be read: {why}. {advice}") from error
    if _deeper(document, MAX_DEPTH):
        raise UsageError(f"{what} {path} cannot be read: it is nested more than {MAX_DEPTH} levels deep. {advice}")
    return document


def read_regular(path: Path, most: int, advice: str, what: str = "The file") -> bytes:
    """The bytes of a regular file of at most ``most`` bytes. Devices, pipes and folders are refused without waiting
    for them. ``what`` and ``advice`` begin and end the sentences.

    Raises:
        UsageError: it is missing, something else, too large, or cannot be read.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise UsageError(f"{what} {path} cannot be read: it is no regular file. {advice}")
            data = file.read(most + 1)
    except (OSError, ValueError) as error:  # a path with a NUL is a ValueError
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise UsageError(f"{what} {path} cannot be read: {why}. {advice}") from error
    if len(data) > most:
        raise UsageError(f"{what} {path} cannot be read: it has more than {most:,} bytes. {advice}")
    return data


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is larger than any number")
    return value


def _whole(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise ValueError(f"{text[:40]}... is too large a number")
    return int(text)


def _deeper(document: Any, levels: int) -> bool:
    """Whether lists and objects lie in each other more than ``levels`` deep."""
    row = [document]
    for _ in range(levels + 1):
        row = [item for part in row if isinstance(part, list | dict)
               for item in (part.values() if isinstance(part, dict) else part)]
        if not row:
            return False
    return True
