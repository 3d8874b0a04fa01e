"""Candidates that misuse their process: what each does, and the verdict it gets behind which walls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.harness import escape

End = tuple[str, str] | None
"""Outcome and code of the failure; ``None``: its answer stands, because what it did had no effect."""

RAISED: End = ("runtime_error", "exception")
EARLY: End = ("runtime_error", "early_exit")
CRASHED: End = ("runtime_error", "crash")
LATE: End = ("timeout", "timeout")
MEMORY: End = ("over_limit", "memory_limit")
PROCESSES: End = ("over_limit", "process_limit")
DISK: End = ("over_limit", "disk_limit")
OUTPUT: End = ("over_limit", "output_limit")

STRICT = ("3", "2")
LIVES_IN: Mapping[str, dict[str, Any]] = {
    "3": {},
    "2": {"namespaces": False, "without": ("uid",)},
    "3 without seccomp": {"without": ("seccomp",)},
    "2 without seccomp": {"namespaces": False, "without": ("uid", "seccomp")},
}
"""The last two let a candidate start processes: what the keeper does about them."""


@dataclass(frozen=True, slots=True)
class Life:
    """``source`` is the whole candidate; ``ends`` by setting, every end that is right there. Settings not named are not
    tried: with those walls the attack would be the same, or would reach this machine."""

    name: str
    does: str
    source: str
    ends: Mapping[str, tuple[End, ...]]
    deadline_s: float = 30.0
    data_bytes: int | None = None


HONEST = "def run(x, out):\n    out[:] = 2 * x\n"
START = escape.PYTHON + "import ctypes, os, signal, sys, threading, time\nimport numpy as np\n"


def _strict(name: str, does: str, body: str, *ends: End, **more: Any) -> Life:
    return Life(name, does, START + body + "\n" + HONEST, dict.fromkeys(STRICT, ends), **more)


def _once(name: str, does: str, body: str, *ends: End, **more: Any) -> Life:
    """An end that has nothing to do with which walls stand: tried at level 3 only."""
    return Life(name, does, START + body + "\n" + HONEST, {"3": ends}, **more)


def _forks(name: str, does: str, body: str, strict: tuple[End, ...], namespaces: tuple[End, ...],
           tree: tuple[End, ...] | None = None, **more: Any) -> Life:
    ends: dict[str, tuple[End, ...]] = {**dict.fromkeys(STRICT, strict), "3 without seccomp": namespaces}
    if tree is not None:
        ends["2 without seccomp"] = tree
    return Life(name, does, START + body + "\n" + HONEST, ends, **more)


PROCESSES_STARTED = (
    _forks("forks", "forks and answers in both processes", "os.fork()", (RAISED,),
           (None, ("reward_hack", "forged_answer")), (None, ("reward_hack", "forged_answer"))),
    _forks("daemon", "leaves a daemon in a session of its own", """
try:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for fd in range(3): os.close(fd)
            time.sleep(600)
        os._exit(0)
except PermissionError:
    pass
""", (None,), (None,), (None,)),
    _forks("stubborn_daemon", "leaves a daemon that ignores every signal it can", """
try:
    if os.fork() == 0:
        for number in set(range(1, 65)) - {9, 19, 32, 33}:
            signal.signal(number, signal.SIG_IGN)
        while True: time.sleep(600)
except PermissionError:
    pass
""", (None,), (None,), (None,)),
    _forks("fork_bomb", "forks without end, in every process", """
while True:
    try: os.fork()
    except BlockingIOError: time.sleep(0.1)
""", (RAISED,), (PROCESSES, MEMORY, LATE), deadline_s=3.0),
    _forks("many_processes", "starts hundreds of processes that wait", """
for _ in range(400):
    if os.fork() == 0:
        time.sleep(600)
time.sleep(600)
""", (RAISED,), (RAISED, PROCESSES), (PROCESSES,)),
    _forks("shared_hoard", "spreads its memory over processes, each below its limit", """
for _ in range(8):
    if os.fork() == 0:
        kept = np.ones(1 << 24)
        time.sleep(600)
time.sleep(600)
""", (RAISED,), (MEMORY,), (MEMORY,), data_bytes=600 << 20),
    _strict("threads_without_end", "starts threads without end",
            "while True: threading.Thread(target=time.sleep, args=(600,), daemon=True).start()",
            RAISED, PROCESSES, MEMORY),
    _strict("helper_left", "leaves a thread that works on", """
def work():
    while True: sum(range(1000))
threading.Thread(target=work, daemon=True).start()
""", None),
)

SPACE = (
    _strict("sixty_four_gigabytes", "asks for 64 GB at once", "kept = np.ones(8 << 30)", MEMORY),
    _strict("hoard", "takes memory bit by bit and writes to it", """
kept = []
while True: kept.append(np.ones(1 << 20))
""", MEMORY, data_bytes=512 << 20),
    _once("stubborn_hoard", "takes memory and ignores that it gets no more", """
kept = []
while True:
    try: kept.append(np.ones(1 << 20))
    except MemoryError: time.sleep(0.01)
""", LATE, deadline_s=1.5, data_bytes=512 << 20),
    Life("fills_disk", "writes files until the disk is full", START + """
number = 0
while True:
    with open(str(number), "wb") as file: file.write(bytes(4 << 20))
    number += 1
""", {"3": (RAISED,), "2": (DISK, RAISED)}),
    Life("fills_disk_unseen", "fills the disk with files that have no name", START + """
held = []
while True:
    file = open("x", "wb", buffering=0)
    os.unlink("x")
    file.write(bytes(4 << 20))
    held.append(file)
""", {"3": (RAISED,), "2": (DISK, RAISED)}),
    Life("names_without_end", "makes files without end", START + """
number = 0
while True:
    open(str(number), "wb").close()
    number += 1
""", {"3": (RAISED,), "2": (DISK,)}),
    _strict("prints_without_end", "floods standard output", "while True: os.write(1, bytes(1 << 16))", OUTPUT),
    Life("busy_keeper", "fills its folder while it keeps its keeper busy with output", START + """
def talk():
    while True:
        os.write(1, b"x")
        time.sleep(0.001)
threading.Thread(target=talk, daemon=True).start()
held = []
while True:
    file = open("x", "wb", buffering=0)
    os.unlink("x")
    file.write(bytes(4 << 20))
    held.append(file)
    time.sleep(0.001)
""", {"3": (RAISED,), "2": (DISK,)}),
    _once("pipes_without_end", "opens pipes without end", """
held = []
while True: held.append(os.pipe())
""", RAISED),
)

ENDINGS = (
    _strict("sleeps", "sleeps for ever", "time.sleep(10**6)", LATE, deadline_s=1.0),
    _strict("stops_itself", "stops itself", "os.kill(os.getpid(), signal.SIGSTOP)", LATE, deadline_s=1.0),
    _once("spins", "spins in a thread and in the main one", """
threading.Thread(target=lambda: [None for _ in iter(int, 1)], daemon=True).start()
while True: pass
""", LATE, deadline_s=1.0),
    _strict("exits", "ends its process with status 0", "os._exit(0)", EARLY),
    _once("exits_from_thread", "ends its process from a thread", """
threading.Thread(target=os._exit, args=(0,)).start()
time.sleep(60)
""", EARLY),
    _once("exits_politely", "raises SystemExit behind a handler for exit", """
import atexit
atexit.register(print, "PASSED")
raise SystemExit(0)
""", EARLY),
    _once("exit_by_number", "exits by the bare system call",
            "ctypes.CDLL(None).syscall(231 if os.uname().machine == 'x86_64' else 94, 0)", EARLY),
    _strict("segfaults", "reads from nowhere", "ctypes.string_at(8)", CRASHED),
    _once("segfaults_on", "ignores that it reads from nowhere", """
signal.signal(signal.SIGSEGV, signal.SIG_IGN)
ctypes.string_at(8)
""", CRASHED),
    _once("segfaults_for_ever", "handles the fault and goes back to it", """
signal.signal(signal.SIGSEGV, lambda *_: None)
ctypes.string_at(8)
""", LATE, CRASHED, deadline_s=1.0),
    _once("aborts", "aborts", "os.abort()", CRASHED),
    _once("alarm", "is ended by its own timer", "signal.setitimer(signal.ITIMER_REAL, 0.01)\ntime.sleep(60)",
            CRASHED),
    _once("alarms_raise", "raises from a timer, over and over", """
def late(*_): raise RuntimeError("now")
signal.signal(signal.SIGALRM, late)
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
time.sleep(60)
""", RAISED, EARLY, CRASHED, ("reward_hack", "forged_answer")),
    _once("kills_itself", "kills itself as the system would", "os.kill(os.getpid(), signal.SIGKILL)", MEMORY),
    _strict("kills_group", "kills its process group", "os.kill(0, signal.SIGKILL)\ntime.sleep(600)", RAISED),
    _once("old_calls", "makes system calls by the 32-bit entry", """
import mmap
if os.uname().machine != "x86_64": os.abort()
page = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, 7)
page.write(bytes.fromhex("b814000000cd80c3"))
ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
""", CRASHED),
    _once("recurses", "recurses without end", "sys.setrecursionlimit(10**9)\ndef f(): f()\nf()", RAISED,
            MEMORY, CRASHED, LATE, deadline_s=1.0, data_bytes=512 << 20),
)

TRACES = (
    _strict("odd_files", "leaves files that break cleaning", r"""
os.makedirs("a/b")
for name in (b"\xff\xfe", b"new\nline", b"-rf", b"*", b" ", b"\x1b[2J", b"x" * 255):
    open(name, "wb").close()
os.symlink("/", "root")
os.symlink("loop", "loop")
os.link("a/../-rf", "hard")
open("a/b/kept", "wb").close()
here = os.getcwd()
for _ in range(1500):
    os.mkdir("deep")
    os.chdir("deep")
os.chdir(here)
os.chmod("a/b", 0)
os.chmod("a", 0)
""", None),
    _strict("poison", "changes everything it can for the next candidate", """
import locale
os.environ["LD_PRELOAD"] = "/private-tmp/evil.so"
os.environ["NUMBA_CACHE_DIR"] = "/tmp"
os.environ["PYTHONPATH"] = "/tmp"
os.umask(0)
sys.path.insert(0, "/tmp")
sys.setswitchinterval(1.0)
np.empty = np.zeros
np.ndarray
import numba, random, tempfile
numba.njit = lambda *a, **k: None
numba.config.NUMBA_DEFAULT_NUM_THREADS = 99
time.perf_counter = lambda: 0.0
random.seed(1)
tempfile.tempdir = "/tmp"
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
signal.setitimer(signal.ITIMER_REAL, 3600.0)
for name in ("evil.so", "numba.py", "sitecustomize.py"): open(name, "w").write("raise SystemExit")
""", None),
)

LIVES: tuple[Life, ...] = (*PROCESSES_STARTED, *SPACE, *ENDINGS, *TRACES)

WORLD = escape.PYTHON + """
import hashlib, json, os, random, resource, signal, sys, tempfile, threading, time
import numpy, numba
tmp = os.getcwd()
def known(descriptor):
    try:
        return bool(os.fstat(descriptor))
    except OSError:
        return False
limits = {n: resource.getrlimit(getattr(resource, n)) for n in dir(resource)
          if n.startswith("RLIMIT_") and n != "RLIMIT_NPROC"}
world = {
    "environment": {k: v.replace(tmp, "TMP") for k, v in os.environ.items()}, "files": os.listdir(tmp),
    "mask": os.umask(0o077), "path": sys.path, "cores": sorted(os.sched_getaffinity(0)), "limits": limits,
    "nice": os.getpriority(os.PRIO_PROCESS, 0), "policy": os.sched_getscheduler(0),
    "signals": [str(signal.getsignal(n)) for n in signal.valid_signals() if n not in (9, 19)],
    "timer": signal.getitimer(signal.ITIMER_REAL), "names": [numpy.empty.__name__, numba.njit.__name__],
    "threads": [numba.config.NUMBA_DEFAULT_NUM_THREADS, threading.active_count()], "switch": sys.getswitchinterval(),
    "descriptors": [n for n in range(64) if known(n)], "clock": time.perf_counter() > 0, "zone": time.tzname,
    "temporary": tempfile.gettempdir().replace(tmp, "TMP"),
}
digest = hashlib.sha256(json.dumps(world, sort_keys=True).encode()).digest()

def run(x, out):
    out[: len(x)] = 2 * x
    out[len(x) :] = list(digest)
"""
"""An honest candidate that adds a digest of what it finds around it."""
