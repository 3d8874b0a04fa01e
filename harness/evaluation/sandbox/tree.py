"""All processes below the calling one: list, stop, continue, kill. Used by the keeper of a candidate process."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import time
from collections.abc import Iterable, Iterator

PROC = "/proc"
DEAD = "ZX"
TURN_S = 1e-4
"""A signal takes effect when its target gets a turn: the caller, which may outrank it, has to leave the core."""
JUDGE, KEEPER, TIMED = 3, 2, 1
"""Real-time levels: whoever can stop a runaway kernel runs before it, even on a single core."""


def stat(pid: int) -> tuple[str, int] | None:
    """State letter and parent of ``pid``, ``None`` when it is gone."""
    try:
        with open(f"{PROC}/{pid}/stat", "rb") as file:  # noqa: PTH123 - paths cost more than the read
            words = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return words[0].decode(), int(words[1])


def involuntary_switches(pid: int) -> int:
    """How often the main thread of ``pid`` lost its core although it could have gone on; 0 when unknown."""
    try:
        with open(f"{PROC}/{pid}/status", "rb") as file:  # noqa: PTH123
            return int(file.read().partition(b"nonvoluntary_ctxt_switches:")[2].split()[0])
    except (OSError, ValueError, IndexError):
        return 0


def cpu_seconds(pids: Iterable[int]) -> float:
    """What the processes have spent on any core so far, threads that have ended included."""
    total = 0.0
    for pid in pids:
        with contextlib.suppress(OSError):
            total += time.clock_gettime((~pid << 3) | 2)  # the kernel's number for the clock of another process
    return total


def ended_seconds(pids: Iterable[int]) -> float:
    """What processes that have ended spent, as far as the processes ``pids`` or this one waited for them."""
    ticks = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError), open(f"{PROC}/{pid}/stat", "rb") as file:  # noqa: PTH123
            words = file.read().rpartition(b")")[2].split()
            ticks += int(words[13]) + int(words[14])
    waited = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ticks / os.sysconf("SC_CLK_TCK") + waited.ru_utime + waited.ru_stime


def descendants() -> set[int]:
    """Every living or dead descendant of this process, by the kernel's lists of children where it keeps them: cheap
    however many processes the machine runs."""
    if not os.path.exists(f"{PROC}/self/task/{os.getpid()}/children"):  # noqa: PTH110
        return set(members())
    found: set[int] = set()
    waiting = [os.getpid()]
    while waiting:
        pid = waiting.pop()
        with contextlib.suppress(OSError):  # it ended meanwhile, which the kernel says in several ways
            for thread in os.listdir(f"{PROC}/{pid}/task"):  # noqa: PTH208
                with open(f"{PROC}/{pid}/task/{thread}/children", "rb") as file:  # noqa: PTH123
                    new = {int(word) for word in file.read().split()} - found
                found |= new
                waiting += new
    return found


def members() -> dict[int, str]:
    """State by pid of every living descendant of this process."""
    parents: dict[int, tuple[str, int]] = {}
    for name in os.listdir(PROC):  # noqa: PTH208
        if name.isdigit() and (found := stat(int(name))) is not None:
            parents[int(name)] = found
    below: dict[int, str] = {}
    known = {os.getpid()}
    grew = True
    while grew:
        grew = False
        for pid, (state, parent) in parents.items():
            if parent in known and pid not in known:
                known.add(pid)
                grew = True
                if state not in DEAD:
                    below[pid] = state
    return below


def _signal(pids: Iterator[int] | dict[int, str], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def stop(*, own_namespace: bool, patience_s: float = 2.0) -> bool:
    """Freeze every descendant; true once all of them are seen stopped."""
    until = time.monotonic() + patience_s
    while time.monotonic() < until:
        if own_namespace:
            try:
                os.kill(-1, signal.SIGSTOP)  # one step for all, however fast they fork
            except ProcessLookupError:
                return True
        living = members()
        running = {pid: state for pid, state in living.items() if state not in "Tt"}
        if not running:
            return True
        _signal(running, signal.SIGSTOP)
        time.sleep(TURN_S)
    return False


def resume() -> None:
    """Let every descendant run again."""
    _signal(members(), signal.SIGCONT)


def kill(*, own_namespace: bool, patience_s: float = 2.0) -> bool:
    """Kill every descendant; true once none is left alive."""
    until = time.monotonic() + patience_s
    while time.monotonic() < until:
        if own_namespace:
            try:
                os.kill(-1, signal.SIGKILL)
            except ProcessLookupError:
                return True
        living = members()
        if not living:
            return True
        _signal(living, signal.SIGKILL)
        time.sleep(TURN_S)
        _reap()
    return False


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def ahead(pid: int, level: int) -> bool:
    """Run ``pid`` (0: this thread) before all ordinary work, where this process may decide that; its children do not
    inherit it."""
    try:
        os.sched_setscheduler(pid, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(level))
    except OSError:
        return False
    return True


def ordinary(pid: int) -> None:
    """Undo ``ahead``."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(pid, os.SCHED_OTHER, os.sched_param(0))


def pin(pid: int, cores: set[int]) -> None:
    """Keep every thread of ``pid`` on ``cores``, ahead of everybody else there where this process may decide that."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it ended meanwhile
        for name in os.listdir(f"{PROC}/{pid}/task"):  # noqa: PTH208
            os.sched_setaffinity(int(name), cores)
            ahead(int(name), TIMED)
