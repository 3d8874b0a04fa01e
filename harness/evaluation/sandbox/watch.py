"""What a candidate's processes use together, looked at now and then by their keeper: the kernel's own limits count per
process, per file and per user, never per candidate."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass

from harness.evaluation.sandbox import tree

MEMORY, PROCESSES, DISK, OUTPUT = "memory", "processes", "disk", "output"
EVERY_MS = 200
TASKS = 256
ENTRIES = 4096
SCARCE = 16
"""A machine with less than one part in so many of its memory left is about to kill something."""
_FIELDS = {b"RssAnon": "memory", b"VmPTE": "memory", b"RssShmem": "shared", b"Threads": "tasks"}


@dataclass(frozen=True, slots=True)
class Allowance:
    """Bytes of private memory, threads of all processes, and a folder on a disk of the machine (``None``: it is bounded
    by itself) that may hold ``tmp_bytes``."""

    memory_bytes: int | None
    tasks: int = TASKS
    tmp: str | None = None
    tmp_bytes: int = 64 << 20


def excess(allowance: Allowance) -> str | None:
    """What the descendants of the calling process use too much of, ``None`` where all is well."""
    used = {"memory": 0, "shared": 0, "tasks": 0}
    pids = list(tree.descendants())
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError):
            _add(used, pid)
    if used["tasks"] > allowance.tasks:
        return PROCESSES
    if allowance.memory_bytes is not None:
        if used["memory"] > allowance.memory_bytes and _own(pids, used["memory"]) > allowance.memory_bytes:
            return MEMORY
        if used["shared"] > allowance.memory_bytes and _scarce():  # lent arrays are shared too: no fault by themselves
            return MEMORY
    if allowance.tmp is not None and _folder_over(allowance.tmp, allowance.tmp_bytes, pids):
        return DISK
    return None


def _add(used: dict[str, int], pid: int) -> None:
    """Add ``VmPTE`` and ``Rss*`` (kB in the file, bytes here) and the number of threads of one process."""
    with open(f"{tree.PROC}/{pid}/status", "rb") as file:  # noqa: PTH123 - paths cost more than the read
        for line in file:
            name, _, value = line.partition(b":")
            kind = _FIELDS.get(name)
            if kind is not None:
                used[kind] += int(value.split()[0]) * (1 if kind == "tasks" else 1024)


def _own(pids: Iterable[int], counted: int) -> int:
    """Private memory of the processes together, each page once although forked processes share it; ``counted`` where
    the kernel does not say. Slower, hence asked only in doubt."""
    total = 0
    for pid in pids:
        try:
            with open(f"{tree.PROC}/{pid}/smaps_rollup", "rb") as file:  # noqa: PTH123
                facts = dict(line.split(b":", 1) for line in file if b"-" not in line.partition(b" ")[0])
            total += int(facts[b"Pss_Anon"].split()[0]) * 1024
        except (FileNotFoundError, ProcessLookupError):  # it ended
            continue
        except (OSError, KeyError, ValueError, IndexError):
            return counted
    return total


def _scarce() -> bool:
    with contextlib.suppress(OSError, ValueError, KeyError), open(f"{tree.PROC}/meminfo", "rb") as file:  # noqa: PTH123
        facts = {line.partition(b":")[0]: int(line.split()[1]) for line in file}
        return facts[b"MemAvailable"] * SCARCE < facts[b"MemTotal"]
    return False


def _folder_over(folder: str, most: int, pids: Iterable[int]) -> bool:
    """Whether ``folder`` holds too much: bytes (files that were deleted but are held open included) or names."""
    total, names, waiting = 0, 0, [folder]
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                names += 1
                if names > ENTRIES:
                    return True
                with contextlib.suppress(OSError):
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
    return total + _deleted(pids) > most


def _deleted(pids: Iterable[int]) -> int:
    """Bytes of regular files on a disk that have no name any more."""
    seen: dict[tuple[int, int], int] = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            for name in os.listdir(f"{tree.PROC}/{pid}/fd"):  # noqa: PTH208
                with contextlib.suppress(OSError):
                    link = f"{tree.PROC}/{pid}/fd/{name}"
                    found = os.stat(link)  # noqa: PTH116
                    # a memory file has no name either: the judge lent it
                    if stat.S_ISREG(found.st_mode) and found.st_nlink == 0 and "/memfd:" not in os.readlink(link):  # noqa: PTH115
                        seen[found.st_dev, found.st_ino] = found.st_blocks * 512
    return sum(seen.values())
