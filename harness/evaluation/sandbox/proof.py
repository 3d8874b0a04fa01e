"""The proved isolation level: a probe runs as a candidate and tries to escape, while the judge watches from outside."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.domain.errors import InfrastructureError
from harness.evaluation.ports import CandidateFault
from harness.evaluation.sandbox import cgroup, frames, jail, walls
from harness.evaluation.sandbox.client import ServerClient
from harness.evaluation.sandbox.escape import KERNEL_CALLS
from harness.evaluation.sandbox.worker import CGROUP, SandboxWorker

FILES = ("read_secret", "write_outside", "execute")
NETWORK = ("tcp", "udp", "abstract_socket")
PEERS = ("read_judge", "signal_judge", "trace_judge", "limit_judge")
LIMITS = ("large_file", "many_files", "signal_keeper", "read_keeper")
NAMESPACES = ("pidns", "mountns", "netns")
KERNEL = ("netlink", "shared_memory", "user_namespace", "mount", *KERNEL_CALLS)
"""What only the system-call filter stops at every level: it decides whether that wall is proved, not the level."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What the probe showed. ``level`` 0 to 3 as in DESIGN section 6; ``proved`` names the walls that stood and held;
    ``escaped`` the attempts that succeeded; ``missing`` says of each wall that does not stand why."""

    level: int
    proved: tuple[str, ...]
    escaped: tuple[str, ...]
    own_uid: bool
    trouble: str = ""
    missing: tuple[tuple[str, str], ...] = ()


def prove(server: ServerClient, without: Sequence[str] = ()) -> Proof:
    """Probe the strongest walls ``server`` can build, then without an own uid where that one breaks Python.

    ``without`` names walls that are left out on request.

    Raises:
        InfrastructureError: no candidate process starts at all.
    """
    own_uid = server.own_uid and walls.UID not in without
    first = _probe(server, without, own_uid=own_uid)
    if first is not None:
        return first
    second = _probe(server, without, own_uid=False) if own_uid else None
    if second is not None:
        return second
    raise InfrastructureError(
        f"No candidate process of mode '{server.mode.name}' gets through its own start. {server.trouble} "
        "Run 'python -m harness doctor'."
    )


def _probe(server: ServerClient, without: Sequence[str], *, own_uid: bool) -> Proof | None:
    with _bait() as bait:
        forked = server.fork({"probe": True, "uid": own_uid, "without": list(without)})
        worker = SandboxWorker(forked, deadline_s=20.0)
        try:
            worker.wait_ready()
            facts = {**bait.facts, "judge_pid": os.getpid(), "tmp": jail.TMP if server.jail else forked.tmp}
            answer = worker.exchange(facts)
            grouped = forked.group is not None and bool(forked.group.members())
        except (InfrastructureError, CandidateFault):
            return None
        finally:
            tree_dead = _dies(worker, forked.channel)
        if answer["broken"]:
            return None
        escaped = set(answer["escaped"]) | bait.touched()
    standing = tuple(wall for wall in worker.standing if wall != CGROUP or grouped)
    return _grade(standing, escaped, tree_dead=tree_dead, foreign_uid=answer["uid"] != os.getuid(),
                  trouble=server.trouble, missing=_missing(server, worker.missing, without, own_uid=own_uid))


def _missing(server: ServerClient, said: dict[str, str], without: Sequence[str], *,
             own_uid: bool) -> tuple[tuple[str, str], ...]:
    """Why walls do not stand, by wall."""
    reasons = dict(said)
    if cgroup.home()[0] is None:
        reasons[CGROUP] = cgroup.home()[1]
    if not server.jail:
        reasons |= dict.fromkeys(NAMESPACES, server.trouble.removeprefix("no private namespaces: "))
    if not own_uid:
        reasons[walls.UID] = ("left out on request" if walls.UID in without else
                              "the worker does not run as root" if os.geteuid() != 0 else
                              "the namespaces it runs in allow none" if not server.own_uid else
                              "a process of another user does not start: it cannot read Python and its packages")
    return tuple(sorted(reasons.items()))


def _dies(worker: SandboxWorker, channel: socket.socket) -> bool:
    """Close the worker and see whether its daemon, the last holder of the channel, is dead."""
    watch = channel.dup() if channel.fileno() >= 0 else None
    worker.close()
    if watch is None:
        return False
    with watch, contextlib.suppress(frames.FrameError, OSError):
        watch.settimeout(2.0)
        return watch.recv(1) == b""
    return False


def _grade(standing: tuple[str, ...], escaped: set[str], *, tree_dead: bool, foreign_uid: bool, trouble: str,
           missing: tuple[tuple[str, str], ...] = ()) -> Proof:
    def held(*names: str) -> bool:
        return not escaped & set(names)

    found = set(standing)
    # in a user namespace without a map every user looks foreign: only one that was taken on purpose counts
    foreign_uid = foreign_uid and walls.UID in found
    limits = tree_dead and held(*LIMITS) and "limits" in found
    files = held(*FILES) and bool({"landlock", "mountns"} & found)
    network = held(*NETWORK) and bool({"netns", "seccomp"} & found)
    peers = held(*PEERS) and (foreign_uid or "pidns" in found)
    level = 0
    for reached, wall in enumerate((limits, files and network, peers), start=1):
        if not wall:
            break
        level = reached
    holds = {"limits": limits, "landlock": files, "mountns": files, "netns": network, "seccomp": held(*KERNEL),
             "pidns": peers and tree_dead, "uid": peers and foreign_uid, "no_new_privs": True, CGROUP: tree_dead}
    proved = tuple(name for name in standing if holds.get(name, False))
    return Proof(level, proved, tuple(sorted(escaped)), own_uid="uid" in found, trouble=trouble, missing=missing)


class _Bait:
    """Things to steal or reach: a readable secret, a writable directory, a TCP and a UDP port."""

    def __init__(self, home: Path) -> None:
        self._home = home
        home.chmod(0o755)
        (home / "secret").write_text("secret")
        (home / "open").mkdir()
        (home / "open").chmod(0o777)
        self._tcp = socket.create_server(("127.0.0.1", 0))
        self._abstract = socket.socket(socket.AF_UNIX)
        name = f"kernelopt-{secrets.token_hex(8)}"
        self._abstract.bind(b"\0" + name.encode())
        self._abstract.listen()
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind(("127.0.0.1", 0))
        self.facts: dict[str, object] = {
            "secret": str(home / "secret"), "writable": str(home / "open"),
            "tcp": self._tcp.getsockname()[1], "udp": self._udp.getsockname()[1],
            "abstract": name,
        }

    def touched(self) -> set[str]:
        """What arrived or appeared outside, whatever the probe says."""
        found = {"write_outside"} if any((self._home / "open").iterdir()) else set()
        for name, sock in (("tcp", self._tcp), ("udp", self._udp), ("abstract_socket", self._abstract)):
            sock.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                if name == "udp":
                    sock.recv(8)
                else:
                    sock.accept()[0].close()
                found.add(name)
        return found

    def remove(self) -> None:
        self._tcp.close()
        self._udp.close()
        self._abstract.close()
        shutil.rmtree(self._home, ignore_errors=True)


@contextlib.contextmanager
def _bait() -> Iterator[_Bait]:
    bait = _Bait(Path(tempfile.mkdtemp(prefix="kernelopt-bait-")))
    try:
        yield bait
    finally:
        bait.remove()

