"""Removing a folder that a candidate could write to: whatever it left there must not stop the cleaning."""

from __future__ import annotations

import contextlib
import os
import stat
import uuid

OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
PATIENCE = 3


def remove(folder: str) -> bool:
    """Remove ``folder`` with everything below; true when it is gone. Links are removed, never followed.

    Folders without permission bits are given them, and nesting of any depth is flattened first: deep folders are moved
    up to the top, so that neither the stack nor the longest path allowed matters. The processes that could write there
    must have ended.
    """
    for _ in range(PATIENCE):
        try:
            if not stat.S_ISDIR(os.lstat(folder).st_mode):
                os.unlink(folder)  # noqa: PTH108
                return True
            top = _opened(folder, None)
        except FileNotFoundError:
            return True
        except OSError:
            return False
        try:
            _empty(top)
        finally:
            os.close(top)
        with contextlib.suppress(OSError):
            os.rmdir(folder)  # noqa: PTH106
            return True
    return False


def _opened(name: str, parent: int | None) -> int:
    """A descriptor of a folder that may have no permission bits."""
    try:
        return os.open(name, OPEN, dir_fd=parent)
    except PermissionError:
        os.chmod(name, 0o700, dir_fd=parent)
        return os.open(name, OPEN, dir_fd=parent)


def _empty(top: int) -> None:
    """Empty the folder ``top``: one folder at a time, whose own folders move up to it."""
    while True:
        folders = [name for name in os.listdir(top) if not _unlinked(name, top)]
        progress = False
        for name in folders:
            with contextlib.suppress(OSError):
                progress |= _dissolve(name, top)
        if not folders or not progress:
            return


def _unlinked(name: str, parent: int) -> bool:
    """Whether ``name`` was no folder and is gone (or cannot be removed at all, which the caller then sees)."""
    try:
        if stat.S_ISDIR(os.lstat(name, dir_fd=parent).st_mode):
            return False
    except FileNotFoundError:
        return True
    with contextlib.suppress(OSError):
        os.unlink(name, dir_fd=parent)
    return True


def _dissolve(name: str, top: int) -> bool:
    """Remove the files of one folder, move its folders to ``top``, remove it; true where anything changed."""
    os.chmod(name, 0o700, dir_fd=top)  # to list it is not enough: moving a folder changes the folder
    inner = _opened(name, top)
    try:
        for child in os.listdir(inner):  # noqa: PTH208 - a descriptor has no path
            if not _unlinked(child, inner):
                os.chmod(child, 0o700, dir_fd=inner)
                os.rename(child, uuid.uuid4().hex, src_dir_fd=inner, dst_dir_fd=top)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=top)
    return True
