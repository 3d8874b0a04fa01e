"""The proved isolation level: a probe runs as a candidate and tries to escape, while the judge watches from outside."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.domain.errors import InfrastructureError
from harness.evaluation.ports import CandidateFault
from harness.evaluation.sandbox import frames, jail
from harness.evaluation.sandbox.client import ServerClient
from harness.evaluation.sandbox.worker import SandboxWorker

FILES = ("read_secret", "write_outside", "execute")
NETWORK = ("tcp", "udp")
PEERS = ("read_judge", "signal_judge", "trace_judge")
LIMITS = ("large_file", "many_files", "signal_keeper")


@dataclass(frozen=True, slots=True)
class Proof:
    """What the probe showed. ``level`` 0 to 3 as in DESIGN section 6; ``proved`` names the walls that stood and held;
    ``escaped`` the attempts that succeeded."""

    level: int
    proved: tuple[str, ...]
    escaped: tuple[str, ...]
    own_uid: bool
    trouble: str = ""


def prove(server: ServerClient) -> Proof:
    """Probe the strongest walls ``server`` can build, then without an own uid where that one breaks Python.

    Raises:
        InfrastructureError: no candidate process starts at all.
    """
    first = _probe(server, own_uid=server.own_uid)
    if first is not None:
        return first
    second = _probe(server, own_uid=False) if server.own_uid else None
    if second is not None:
        return second
    raise InfrastructureError(
        f"No candidate process of mode '{server.mode.name}' gets through its own start. {server.trouble} "
        "Run 'python -m harness doctor'."
    )


def _probe(server: ServerClient, *, own_uid: bool) -> Proof | None:
    with _bait() as bait:
        control, channel, tmp = server.fork({"probe": True, "uid": own_uid})
        worker = SandboxWorker(control, channel, tmp, deadline_s=20.0)
        try:
            worker.wait_ready()
            facts = {**bait.facts, "judge_pid": os.getpid(), "tmp": jail.TMP if server.jail else tmp}
            answer = worker.exchange(facts)
        except (InfrastructureError, CandidateFault):
            return None
        finally:
            tree_dead = _dies(worker, channel)
        if answer["broken"]:
            return None
        escaped = set(answer["escaped"]) | bait.touched()
    return _grade(worker.standing, escaped, tree_dead=tree_dead, foreign_uid=answer["uid"] != os.getuid(),
                  trouble=server.trouble)


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


def _grade(standing: tuple[str, ...], escaped: set[str], *, tree_dead: bool, foreign_uid: bool, trouble: str) -> Proof:
    def held(*names: str) -> bool:
        return not escaped & set(names)

    walls = set(standing)
    limits = tree_dead and held(*LIMITS) and "limits" in walls
    files = held(*FILES) and bool({"landlock", "mountns"} & walls)
    network = held(*NETWORK) and bool({"netns", "seccomp"} & walls)
    peers = held(*PEERS) and (foreign_uid or "pidns" in walls)
    level = 0
    for reached, wall in enumerate((limits, files and network, peers), start=1):
        if not wall:
            break
        level = reached
    holds = {"limits": limits, "landlock": files, "mountns": files, "netns": network, "seccomp": network or peers,
             "pidns": peers and tree_dead, "uid": peers and foreign_uid, "no_new_privs": True}
    proved = tuple(name for name in standing if holds.get(name, False))
    return Proof(level, proved, tuple(sorted(escaped)), own_uid="uid" in walls, trouble=trouble)


class _Bait:
    """Things to steal or reach: a readable secret, a writable directory, a TCP and a UDP port."""

    def __init__(self, home: Path) -> None:
        self._home = home
        home.chmod(0o755)
        (home / "secret").write_text("secret")
        (home / "open").mkdir()
        (home / "open").chmod(0o777)
        self._tcp = socket.create_server(("127.0.0.1", 0))
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind(("127.0.0.1", 0))
        self.facts: dict[str, object] = {
            "secret": str(home / "secret"), "writable": str(home / "open"),
            "tcp": self._tcp.getsockname()[1], "udp": self._udp.getsockname()[1],
        }

    def touched(self) -> set[str]:
        """What arrived or appeared outside, whatever the probe says."""
        found = {"write_outside"} if any((self._home / "open").iterdir()) else set()
        for name, sock in (("tcp", self._tcp), ("udp", self._udp)):
            sock.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                if name == "tcp":
                    sock.accept()[0].close()
                else:
                    sock.recv(8)
                found.add(name)
        return found

    def remove(self) -> None:
        self._tcp.close()
        self._udp.close()
        shutil.rmtree(self._home, ignore_errors=True)


@contextlib.contextmanager
def _bait() -> Iterator[_Bait]:
    bait = _Bait(Path(tempfile.mkdtemp(prefix="kernelopt-bait-")))
    try:
        yield bait
    finally:
        bait.remove()

