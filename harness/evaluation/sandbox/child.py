"""The candidate's process, from the fork to the mode's own loop."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import importlib
import mmap
import os
import random
import signal
import socket
import tempfile
from pathlib import Path
from typing import Any

from harness.evaluation.sandbox import frames, linux, walls
from harness.evaluation.sandbox.faults import GUARD, PAGE, Notes

F_GET_SEALS, READ_ONLY_SEALS = 1034, 0x0008 | 0x0010  # no writing at all; none but the judge's
FIRST_FREE = 4


class Channel:
    """All that a mode's loop sees of the judge: documents in, documents out, lent memory."""

    def __init__(self, sock: socket.socket, notes: Notes) -> None:
        self._sock = sock
        self._notes = notes
        self._mapped: list[tuple[int, int]] = []

    def receive(self) -> tuple[dict[str, Any], list[int]]:
        """The next request and its descriptors, which the caller gives to ``lend`` or closes; blocks.

        Raises:
            Closed: the judge is gone.
        """
        return frames.receive(self._sock)

    def send(self, document: dict[str, Any]) -> None:
        """Answer the request."""
        frames.send(self._sock, document)

    def lend(self, fd: int, nbytes: int) -> ctypes.Array[ctypes.c_char]:
        """Map the memory file ``fd`` between two guard ranges that fault when touched, and close ``fd``.

        A file sealed against writing is mapped read-only. The memory stays valid until ``release``.
        """
        size = -(-nbytes // PAGE) * PAGE
        reserve = linux.mmap(0, size + 2 * GUARD, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | linux.MAP_NORESERVE)
        sealed = bool(fcntl.fcntl(fd, F_GET_SEALS) & READ_ONLY_SEALS)
        protection = mmap.PROT_READ | (0 if sealed else mmap.PROT_WRITE)
        address = reserve + GUARD
        flags = mmap.MAP_SHARED | linux.MAP_FIXED | linux.MAP_POPULATE  # page faults are not the kernel's time
        linux.mmap(address, size, protection, flags, fd)
        os.close(fd)
        self._notes.guard(reserve, address)
        self._notes.guard(address + size, address + size + GUARD)
        self._mapped.append((reserve, size + 2 * GUARD))
        return (ctypes.c_char * nbytes).from_address(address)

    def release(self) -> None:
        """Unmap everything lent; arrays over it must not be touched again."""
        for address, length in self._mapped:
            linux.munmap(address, length)
        self._mapped.clear()
        self._notes.clear()


def become(config: dict[str, Any], sock: socket.socket, output: int, notes: Notes, group: int | None = None) -> None:
    """Turn the freshly forked process into a confined candidate process and serve until the judge hangs up.

    ``group`` is where it joins its control group. Never returns.
    """
    status = 1
    try:
        refused = _join(group)
        sock = _only_descriptors(sock, output)
        os.setsid()
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        plan = walls.Plan(
            uid=config["uid"], jail=config["jail"], tmp=config["tmp"], readable=tuple(config["readable"]),
            data_bytes=config["data_bytes"], without=frozenset(config["without"]),
        )
        _private_places(plan.tmp)
        if config.get("cores"):
            os.sched_setaffinity(0, set(config["cores"]))
        _first_to_die()
        built = walls.build(plan)
        if config.get("uid_refused"):
            built.missing[walls.UID] = config["uid_refused"]
        if refused is None:
            built.standing.append("cgroup")
        elif refused:
            built.missing["cgroup"] = refused
        notes.install()
        random.seed()
        channel = Channel(sock, notes)
        channel.send({"ready": built.standing, "missing": built.missing})
        importlib.import_module(config["module"]).serve(channel)
        status = 0
    except frames.Closed:
        status = 0
    finally:
        os._exit(status)


def _join(group: int | None) -> str | None:
    """Join the control group; ``None`` when that worked, else why not (nothing where there is none)."""
    if group is None:
        return ""
    try:
        os.write(group, b"0")
    except OSError as error:
        return str(error)
    return None


def _only_descriptors(sock: socket.socket, output: int) -> socket.socket:
    """Keep nothing but null, the output pipe twice and the channel (as descriptor 3)."""
    null = os.open("/dev/null", os.O_RDONLY)
    kept = fcntl.fcntl(sock.fileno(), fcntl.F_DUPFD, 100)
    pipe = fcntl.fcntl(output, fcntl.F_DUPFD, 100)
    sock.detach()
    for source, target in ((null, 0), (pipe, 1), (pipe, 2), (kept, 3)):
        os.dup2(source, target)
    os.closerange(FIRST_FREE, os.sysconf("SC_OPEN_MAX"))
    os.set_inheritable(3, False)
    return socket.socket(fileno=3)


def _first_to_die() -> None:
    """Where memory runs out, shared memory that no limit counts included, the system ends a candidate, not the judge or
    another candidate: their end would be blamed on the infrastructure."""
    linux.prctl(linux.PR_SET_DUMPABLE, 1)  # until the walls stand: else the file below belongs to root
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def _private_places(tmp: str) -> None:
    os.chdir(tmp)
    os.umask(0o077)
    for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME", "TRITON_CACHE_DIR", "NUMBA_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR"):
        os.environ[name] = tmp
    tempfile.tempdir = tmp
