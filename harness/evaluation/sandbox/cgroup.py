"""A control group (version 2) around each candidate, where the owner of the machine gave one to this installation.

Without one, the kernel's limits per process and the keeper's watch bound a candidate; with one, the kernel itself
bounds the memory and the threads of all its processes together, counts their processor time whatever became of them,
and kills them in one step.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from pathlib import Path

OVERRIDE = "KERNELOPT_CGROUP"
"""Environment variable with the group's folder; its processes, if any, must live in groups below it."""
NEEDED = ("memory", "pids")
PATIENCE_S = 2.0
TMP_BYTES = 64 << 20
_numbers = itertools.count(1)


def home() -> tuple[Path | None, str]:
    """The folder that groups are made in, or ``None`` and why there is none."""
    given = os.environ.get(OVERRIDE)
    if not given:
        return None, f"no control group was given to this installation ({OVERRIDE})"
    folder = Path(given)
    try:
        missing = [name for name in NEEDED if name not in (folder / "cgroup.controllers").read_text().split()]
        if missing:
            return None, f"{folder} has no controller for {' and '.join(missing)}"
        if any(name not in (folder / "cgroup.subtree_control").read_text().split() for name in NEEDED):
            (folder / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in NEEDED))
    except OSError as error:
        return None, f"{folder} cannot be used: {error.strerror}"
    return folder, ""


class Group:
    """One candidate's group. ``procs`` is a descriptor that a process joins by writing ``0`` to it."""

    def __init__(self, parent: Path, *, memory_bytes: int | None, tasks: int) -> None:
        """Make the group and set its limits.

        Raises:
            OSError: the kernel refuses; nothing is left.
        """
        self.path = parent / f"candidate-{os.getpid()}-{next(_numbers)}"
        self.path.mkdir()
        try:
            if memory_bytes is not None:
                (self.path / "memory.max").write_text(str(memory_bytes + TMP_BYTES))
                with contextlib.suppress(OSError):  # a kernel without swap accounting
                    (self.path / "memory.swap.max").write_text("0")
                (self.path / "memory.oom.group").write_text("1")
            (self.path / "pids.max").write_text(str(tasks))
            self.procs = os.open(self.path / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)
        except OSError:
            self.path.rmdir()
            raise

    def cpu_seconds(self) -> float | None:
        """What the group has spent on any core, processes that have ended included; ``None`` when not known."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            for line in (self.path / "cpu.stat").read_text().splitlines():
                name, value = line.split()
                if name == "usage_usec":
                    return int(value) / 1e6
        return None

    def members(self) -> list[int]:
        """Its processes."""
        with contextlib.suppress(OSError):
            return [int(word) for word in (self.path / "cgroup.procs").read_text().split()]
        return []

    def joined(self) -> None:
        """Nobody else will join: give the descriptor up."""
        if self.procs >= 0:
            os.close(self.procs)
            self.procs = -1

    def remove(self) -> bool:
        """Kill what is left in it and remove it; idempotent."""
        self.joined()
        with contextlib.suppress(OSError):
            (self.path / "cgroup.kill").write_text("1")
        return _gone(self.path)


def _gone(path: Path) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            path.rmdir()
            return True
        except FileNotFoundError:
            return True
        except OSError:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.001)  # its processes are being killed


def candidate_group(memory_bytes: int | None, tasks: int) -> Group | None:
    """A group for one candidate, ``None`` where there can be none."""
    folder, _ = home()
    if folder is None:
        return None
    with contextlib.suppress(OSError):
        return Group(folder, memory_bytes=memory_bytes, tasks=tasks)
    return None


def sweep() -> None:
    """Remove the groups of judges that were killed before they could."""
    folder, _ = home()
    for path in folder.glob("candidate-*-*") if folder is not None else ():
        owner = path.name.split("-")[1]
        if owner.isdigit() and not Path("/proc", owner).exists():
            with contextlib.suppress(OSError):
                (path / "cgroup.kill").write_text("1")
            _gone(path)
