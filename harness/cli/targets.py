"""Files that a command writes when its work is done: found out before it begins."""

from __future__ import annotations

import os
from pathlib import Path

from harness.domain.errors import UsageError


def ensure_writable(path: Path | None, option: str) -> None:
    """Refuse a path that no file can be written to, as far as that shows without writing; ``None`` is nothing asked
    for.

    Raises:
        UsageError: it is a folder, a device or a pipe, or lies in no folder that may be written.
    """
    if path is None:
        return
    try:
        taken = (path.exists() or path.is_symlink()) and not path.is_file()
        why = "it is no regular file" if taken else "its name holds a NUL" if "\0" in str(path) else None
        if why is None and not path.parent.is_dir():
            why = "the folder it lies in is not there"
        elif why is None and not os.access(path.parent, os.W_OK | os.X_OK):
            why = "the folder it lies in may not be written"
    except (OSError, ValueError) as error:  # a name that is too long, or has a NUL
        why = str(error)
    if why is not None:
        raise UsageError(f"{option} {path} cannot be written: {why}. Nothing was begun; name another file.")
