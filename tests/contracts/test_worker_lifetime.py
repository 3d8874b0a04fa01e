"""Servers and candidates across the death of one of the processes involved."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from harness.domain.errors import InfrastructureError
from harness.evaluation.ports import CandidateFault
from harness.evaluation.sandbox.client import PREFIX, sweep
from harness.evaluation.sandbox.workers import SandboxOpener

pytestmark = pytest.mark.sandbox

HONEST = "def run(x, out):\n    out[:] = x\n"
JUDGE = """
import sys
from harness.evaluation.sandbox.workers import SandboxOpener
opener = SandboxOpener("numba", without=["seccomp"])
worker = opener.open(deadline_s=600.0)
worker.load("import numba; __builtins__.update(numba.__builtins__)\\nimport os, time\\n"
            "def run(x, out):\\n    pass\\nif os.fork() == 0:\\n    time.sleep(600)\\n")
print(opener.server_pid, flush=True)
sys.stdin.read()
"""


def wait_until(condition, patience_s: float = 60.0) -> bool:
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        if condition():
            return True
        os.sched_yield()
    return condition()


def session_of(pid: int) -> set[int]:
    """``pid`` and every process whose ancestors lead to it, or that still runs the server's program for it."""
    parents = {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                words = (path / "stat").read_bytes().rpartition(b")")[2].split()
            except OSError:
                continue
            if words[0] not in (b"Z", b"X"):
                parents[int(path.name)] = int(words[1])
    found = {pid} & set(parents)
    while True:
        grown = found | {child for child, parent in parents.items() if parent in found}
        if grown == found:
            return found
        found = grown


def test_a_killed_server_is_started_again():
    opener = SandboxOpener("numba")
    try:
        first = opener.server_pid
        os.kill(first, signal.SIGKILL)
        assert wait_until(lambda: not opener._server.alive)
        worker = opener.open()
        worker.load(HONEST)
        worker.close()
        assert opener.server_pid != first
    finally:
        opener.close()


def test_a_candidate_outlives_its_server_but_not_its_judge():
    opener = SandboxOpener("numba")
    worker = opener.open()
    try:
        os.kill(opener.server_pid, signal.SIGKILL)
        worker.load(HONEST)
    finally:
        worker.close()
        opener.close()
    with pytest.raises((InfrastructureError, CandidateFault)):
        worker.load(HONEST)


def test_a_killed_judge_leaves_no_process():
    root = str(Path(__file__).resolve().parents[2])
    judge = subprocess.Popen([sys.executable, "-c", JUDGE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                             cwd=root, env={**os.environ, "PYTHONPATH": root})
    server = int(judge.stdout.readline())
    before = session_of(server)
    judge.kill()
    judge.wait()
    assert len(before) >= 4  # server, keeper, candidate and what it forked
    assert wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in before))


def test_folders_of_dead_judges_are_swept(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    stale, mine = tmp_path / f"{PREFIX}{dead.pid}-abc", tmp_path / f"{PREFIX}{os.getpid()}-abc"
    stale.mkdir()
    mine.mkdir()
    sweep()
    assert not stale.exists()
    assert mine.exists()
