"""The escape probe: runs as a candidate and tries to get out. It reports what worked; the judge watches as well."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import platform
import resource
import signal
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from harness.evaluation.sandbox import linux, walls
from harness.evaluation.sandbox.system_calls import ARCHITECTURES, DENIED

PTRACE_SEIZE = 0x4206
PRIVATE = ("environ", "mem", "maps", "fd/0")
KERNEL_CALLS = ("bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "keyctl", "kcmp", "shmget")
MAP_SHARED_ANONYMOUS = 0x21


def serve(channel: Any) -> None:
    """Take the facts of one escape attempt, try everything, answer, leave a process behind and end."""
    facts, fds = channel.receive()
    for fd in fds:
        os.close(fd)
    judge = facts["judge_pid"]
    tries: dict[str, Callable[[], object]] = {
        "read_secret": lambda: Path(facts["secret"]).read_text(),
        "write_outside": lambda: Path(facts["writable"], "escaped").write_text("out"),
        "read_judge": lambda: _read_private(judge),
        "read_keeper": lambda: _read_private(os.getppid()),
        "signal_judge": lambda: _signal(judge),
        "signal_keeper": _signal_keeper,
        "trace_judge": lambda: _trace(judge),
        "limit_judge": lambda: _limit_judge(judge),
        "tcp": lambda: socket.create_connection(("127.0.0.1", facts["tcp"]), timeout=1.0),
        "udp": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"out", ("127.0.0.1", facts["udp"])),
        "abstract_socket": lambda: socket.socket(socket.AF_UNIX).connect(b"\0" + facts["abstract"].encode()),
        "netlink": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).close(),
        "execute": lambda: _execute(),
        "shared_memory": _shared_memory,
        "user_namespace": lambda: linux.unshare(linux.CLONE_NEWUSER),
        "mount": lambda: linux.mount("none", facts["tmp"], "tmpfs"),
        **{name: partial(_call, name) for name in KERNEL_CALLS},
        "large_file": lambda: _large_file(facts["tmp"]),
        "many_files": lambda: _many_files(),
    }
    escaped = [name for name, attempt in tries.items() if _succeeds(attempt)]
    needed = (os.__file__, ctypes.__file__)
    broken = [path for path in needed if not _succeeds(Path(path).read_bytes)]
    with contextlib.suppress(OSError):  # a process that stays alone leaves none
        _leave_a_daemon()
    channel.send({"id": facts["id"], "escaped": escaped, "broken": broken, "uid": os.getuid(), "pid": os.getpid()})


def _succeeds(attempt: Callable[[], object]) -> bool:
    with contextlib.suppress(OSError, ValueError):
        return attempt() is not False
    return False


def _not_inside(pid: int) -> None:
    """Refuse where ``pid`` names this process or its keeper, so that small numbers of a namespace fool nobody."""
    if pid in (os.getpid(), os.getppid()):
        raise OSError("that is this process tree")


def _signal(pid: int) -> object:
    _not_inside(pid)
    os.kill(pid, 0)
    return True


def _signal_keeper() -> object:
    """The keeper is safe as init of a namespace; otherwise it must not be reachable, or nobody ends the tree."""
    if os.getppid() == 1:
        raise OSError("init takes no signals from inside")
    os.kill(os.getppid(), 0)
    return True


def _read_private(pid: int) -> object:
    """Open what belongs to another process alone; the judge's number may mean this process inside a namespace."""
    if pid == os.getpid():
        raise OSError("that is this process")
    for name in PRIVATE:
        with contextlib.suppress(OSError):
            os.close(os.open(f"/proc/{pid}/{name}", os.O_RDONLY))
            return True
    raise PermissionError("nothing of it is readable")


def _limit_judge(pid: int) -> object:
    _not_inside(pid)
    resource.prlimit(pid, resource.RLIMIT_CORE)
    return True


def _call(name: str) -> object:
    """A call into a wide interface of the kernel; whatever it says of the arguments, it was reached."""
    column = list(ARCHITECTURES).index(platform.machine())
    number = DENIED[name][column]
    if number is None:
        raise OSError("no such call here")
    try:
        linux.syscall(number, 0, 0, 0, 0, 0)
    except OSError as error:
        return error.errno not in (errno.EPERM, errno.ENOSYS, errno.EACCES)
    return True


def _shared_memory() -> object:
    address = linux.mmap(0, 4096, 3, MAP_SHARED_ANONYMOUS)
    linux.munmap(address, 4096)
    return True


def _trace(pid: int) -> object:
    _not_inside(pid)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(PTRACE_SEIZE, pid, None, None) == -1:
        raise PermissionError("no tracing")
    return True


def _execute() -> object:
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(OSError):
            os.execv("/bin/true", ["true"])
        os._exit(77)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def _large_file(tmp: str) -> object:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    path = Path(tmp, "large")
    with path.open("wb") as file:
        file.truncate(walls.FILE_BYTES * 2)
    return True


def _many_files() -> object:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(soft, hard) > walls.OPEN_FILES


def _leave_a_daemon() -> None:
    """A double fork that holds the channel open for ever: the judge sees it end only when the tree is killed."""
    child = os.fork()
    if child == 0:
        os.setsid()
        if os.fork() == 0:
            while True:
                signal.pause()
        os._exit(0)
    os.waitpid(child, 0)
