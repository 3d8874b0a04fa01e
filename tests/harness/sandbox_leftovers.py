"""What candidates could leave behind on this machine, counted before and after: processes, folders, memory, files."""

from __future__ import annotations

import contextlib
import os
import select
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.evaluation.sandbox.client import PREFIX
from harness.evaluation.sandbox.users import FIRST, PER_SERVER, SERVERS

PATIENCE_S = 90.0


@dataclass(frozen=True)
class Trace:
    """A snapshot. ``processes`` are those below the server and those that run as some candidate's user; ``memory`` are
    shared memory, semaphores and queues of the machine; ``descriptors`` and ``threads`` are the judge's."""

    processes: frozenset[int]
    folders: frozenset[str]
    shared: frozenset[str]
    memory: tuple[str, ...]
    mounts: int
    descriptors: tuple[str, ...]
    threads: int


def _living() -> dict[int, tuple[int, int]]:
    """Parent and user of every living process."""
    found: dict[int, tuple[int, int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - many times a second
        if name.isdigit():
            with contextlib.suppress(OSError, IndexError), open(f"/proc/{name}/status", "rb") as file:  # noqa: PTH123
                text = file.read()
                if text.partition(b"State:")[2].split()[0] not in (b"Z", b"X"):
                    found[int(name)] = (int(text.partition(b"PPid:")[2].split()[0]),
                                        int(text.partition(b"\nUid:")[2].split()[0]))
    return found


def below(ancestor: int, living: dict[int, tuple[int, int]] | None = None) -> frozenset[int]:
    """Every living process below ``ancestor``."""
    known = _living() if living is None else living
    found: set[int] = {ancestor}
    while True:
        grown = found | {pid for pid, (parent, _) in known.items() if parent in found}
        if grown == found:
            return frozenset(found - {ancestor})
        found = grown


def _processes(server: int) -> frozenset[int]:
    """Processes below ``server``, and those of users that only its candidates have, whoever adopted them."""
    living, first = _living(), FIRST + server % SERVERS * PER_SERVER
    strangers = {pid for pid, (_, user) in living.items() if first <= user < first + PER_SERVER}
    return below(server, living) | strangers


def _names(folder: str, pattern: str) -> frozenset[str]:
    with contextlib.suppress(OSError):
        return frozenset(str(path) for path in Path(folder).glob(pattern))
    return frozenset()


def _descriptors() -> tuple[str, ...]:
    found = []
    for path in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            found.append(str(path.readlink()).partition(":")[0])
    return tuple(sorted(found))


def trace(server: int) -> Trace:
    """Take a snapshot around the warm server ``server``."""
    temporary = tempfile.gettempdir()
    own = f"{PREFIX}{os.getpid()}-*"
    tables = [Path("/proc/sysvipc", name) for name in ("shm", "sem", "msg")]
    return Trace(
        processes=_processes(server),
        folders=_names(temporary, own) | _names(temporary, f"{own}/candidate-*") | _names(temporary, "*attack*"),
        shared=_names("/dev/shm", "*attack*"),
        memory=tuple(table.read_text() for table in tables if table.exists()),
        mounts=len(Path("/proc/self/mountinfo").read_text().splitlines()),
        descriptors=_descriptors(),
        threads=len(list(Path("/proc/self/task").iterdir())),
    )


@contextlib.contextmanager
def nothing_left(server: int) -> Iterator[None]:
    """Whatever happens inside, afterwards the machine is as before; processes get a moment to end."""
    before = trace(server)
    yield
    deadline = time.monotonic() + PATIENCE_S
    while (more := _added(before, trace(server))) and time.monotonic() < deadline:
        select.select([], [], [], 0.005)  # the processes need the core to end
    assert not more, more


def _added(before: Trace, after: Trace) -> dict[str, object]:
    """What is there now and was not before; what was about to end may have ended."""
    sets = {"processes": after.processes - before.processes, "folders": after.folders - before.folders,
            "shared": after.shared - before.shared}
    plain = {name: (getattr(before, name), getattr(after, name)) for name in ("memory", "mounts", "descriptors",
                                                                              "threads")}
    return {name: value for name, value in sets.items() if value} | {
        name: pair for name, pair in plain.items() if pair[0] != pair[1]}
