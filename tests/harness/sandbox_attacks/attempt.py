"""One thing that a candidate tries, and how many of them run inside one real candidate process."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from tests.harness import escape

NOWHERE: frozenset[str] = frozenset()
NO_FILTER = frozenset({"3 without seccomp", "0"})
"""Where the system-call filter is missing."""
UNWALLED = frozenset({"0"})
NO_FILES = frozenset({"1", "0"})
"""Where nothing keeps a candidate from files."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """``code`` are statements that raise ``OSError`` or return false when they are stopped, and return true when they
    got through; they see ``facts`` of the judge and the names of ``PRELUDE``. ``group`` is the group of cheats it
    belongs to; ``may`` the settings in which it may get through, ``by`` what stops it elsewhere. ``sure``: with no wall
    at all it gets through on every Linux, so that the attempt itself is known to work."""

    name: str
    group: str
    does: str
    code: str
    by: str
    may: frozenset[str] = NOWHERE
    sure: bool = False


PRELUDE = escape.PYTHON + '''
import ctypes, errno, fcntl, mmap, os, resource, signal, socket, struct, sys
from pathlib import Path

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long

def call(number, *arguments):
    """A raw system call; stopped when the kernel does not let it in, through whatever it says of the arguments."""
    words = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    if libc.syscall(ctypes.c_long(number), *words) == -1:
        number = ctypes.get_errno()
        if number in (errno.EPERM, errno.ENOSYS, errno.EACCES):
            raise OSError(number, os.strerror(number))
    return True

def works(number, *arguments):
    """A raw system call that has to succeed."""
    words = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result = libc.syscall(ctypes.c_long(number), *words)
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result

def opens(path, flags):
    """Open and leave alone."""
    os.close(os.open(path, flags))
    return True

def other(pid):
    """A process outside this tree: in a namespace the judge's number may mean one of this tree."""
    if pid in (os.getpid(), os.getppid()):
        raise OSError("inside")
    return pid

def leave(child):
    """End a forked child at once; true in the parent."""
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return True
'''

RUNNER = '''
def run(x, out):
    for index, attempt in enumerate(ATTEMPTS):
        try:
            through = attempt()
        except (OSError, ValueError, OverflowError):
            through = False
        out[index] = 1.0 if through else 2.0
'''


def function(index: int, attempt: Attempt) -> str:
    """The attempt as a function of the candidate."""
    return f"def attempt_{index}():\n" + textwrap.indent(textwrap.dedent(attempt.code).strip(), "    ") + "\n"


def program(attempts: Sequence[Attempt], facts: dict[str, object]) -> str:
    """A candidate whose ``run`` tries everything and writes per attempt 1 (got through) or 2 (stopped) to ``out``."""
    parts = [PRELUDE, f"facts = {facts!r}\n"]
    for index, attempt in enumerate(attempts):
        parts.append(function(index, attempt))
    names = ", ".join(f"attempt_{index}" for index in range(len(attempts)))
    return "\n".join([*parts, f"ATTEMPTS = [{names}]", RUNNER])
