"""Whatever process of an evaluation is killed: nobody survives, nothing is left, and the candidate is not blamed."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from harness.domain.errors import InfrastructureError
from harness.evaluation.ports import CandidateFault
from harness.evaluation.sandbox.workers import SandboxOpener
from tests.harness import escape
from tests.harness.sandbox_leftovers import below, nothing_left

pytestmark = pytest.mark.sandbox

STUBBORN = escape.PYTHON + "import time\nwhile True: time.sleep(0.01)\n"


@pytest.fixture(scope="module", params=[{}, {"namespaces": False, "without": ("uid",)},
                                        {"namespaces": False, "without": ("uid", "seccomp")}],
                ids=["namespaces", "process tree", "no filter"])
def opener(request):
    found = SandboxOpener("numba", **request.param)
    yield found
    found.close()


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])


def family(opener, before: frozenset[int]) -> tuple[int, int]:
    """Keeper and candidate of the worker opened since ``before``; who stood between them and the server ends soon."""
    deadline = time.monotonic() + 90
    while len(new := below(opener.server_pid) - before) != 2:
        assert time.monotonic() < deadline, new
        os.sched_yield()
    candidate = next(pid for pid in new if parent(pid) in new)
    return parent(candidate), candidate


def begun(opener, source: str):
    """A worker whose candidate is at work, and what ends in the thread that waits for it."""
    before = below(opener.server_pid)
    worker = opener.open(deadline_s=60.0)
    keeper, candidate = family(opener, before)
    ends: list[Exception] = []

    def judge() -> None:
        try:
            worker.load(source)
        except (CandidateFault, InfrastructureError) as error:
            ends.append(error)

    thread = threading.Thread(target=judge)
    thread.start()
    return worker, keeper, candidate, thread, ends


def test_a_killed_keeper_takes_its_candidate_along_and_blames_nobody(opener):
    with nothing_left(opener.server_pid):
        worker, keeper, _, thread, ends = begun(opener, STUBBORN)
        os.kill(keeper, signal.SIGKILL)
        thread.join(90)
        worker.close()
    assert [type(error) for error in ends] == [InfrastructureError]


def test_a_candidate_killed_from_outside_is_seen_at_once(opener):
    with nothing_left(opener.server_pid):
        worker, _, candidate, thread, ends = begun(opener, STUBBORN)
        os.kill(candidate, signal.SIGKILL)
        thread.join(90)
        worker.close()
    (error,) = ends
    assert isinstance(error, CandidateFault) and error.fault.code == "memory_limit"  # as when memory runs out
