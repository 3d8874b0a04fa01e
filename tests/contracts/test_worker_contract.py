"""What every candidate process must do, whatever the candidate does. Runs against the numba mode."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import numpy as np
import pytest

from harness.domain.vocabulary import Outcome
from harness.evaluation import sandbox
from harness.evaluation.ports import CandidateFault, Lent
from harness.evaluation.sandbox import modes
from harness.evaluation.sandbox.workers import SandboxOpener
from tests.harness import escape

pytestmark = pytest.mark.sandbox

DOUBLE = """
import numba

@numba.njit
def _kernel(x, out):
    for i in range(x.shape[0]):
        out[i] = 2 * x[i]

def run(x, out):
    _kernel(x, out)
"""
SIZE = 1024


@pytest.fixture(scope="module", params=["strongest walls", "without namespaces"])
def opener(request):
    if request.param == "strongest walls":
        yield sandbox.opener("numba")
        return
    weaker = SandboxOpener("numba", namespaces=False)
    yield weaker
    weaker.close()


@pytest.fixture(scope="module", params=["namespaces", "process tree"])
def lenient(request):
    """Candidates here may start processes: no system-call filter."""
    weaker = SandboxOpener("numba", namespaces=request.param == "namespaces", without=["seccomp"])
    yield weaker
    weaker.close()


class Block:
    """One input and one output in memory files of their own."""

    def __init__(self, size: int = SIZE) -> None:
        self.x, self._x = self._array("x", "input", size)
        self.out, self._out = self._array("out", "output", size)
        self.x[:] = np.arange(size)
        self.out[:] = np.nan

    def _array(self, name, kind, size):
        fd = os.memfd_create(name)
        os.ftruncate(fd, 4 * size)
        array = np.memmap(f"/proc/self/fd/{fd}", np.float32, "r+", shape=(size,))
        return array, Lent(name, kind, "float32", (size,), (1,), 0, 4 * size, fd)

    @property
    def lent(self):
        return [self._x, self._out]


def outcome_of(opener, source, *, deadline_s=20.0, bounds_checks=False, options=None) -> CandidateFault:
    worker = opener.open(deadline_s=deadline_s, bounds_checks=bounds_checks, options=options)
    try:
        with pytest.raises(CandidateFault) as caught:
            worker.load(escape.where_needed(source))
            worker.call(Block().lent, {})
    finally:
        worker.close()
    assert_next_is_unaffected(opener)
    return caught.value.fault


def assert_next_is_unaffected(opener) -> None:
    worker, block = opener.open(deadline_s=30.0), Block()
    try:
        worker.load(DOUBLE)
        worker.call(block.lent, {})
        np.testing.assert_array_equal(block.out, 2 * block.x)
    finally:
        worker.close()


def body(*lines: str) -> str:
    return "def run(x, out):\n" + "".join(f"    {line}\n" for line in lines)


def test_honest_candidate_fills_its_output_and_leaves_its_input(opener):
    worker, block = opener.open(), Block()
    try:
        assert worker.load(DOUBLE).seconds > 0
        report = worker.call(block.lent, {})
    finally:
        worker.close()
    np.testing.assert_array_equal(block.out, 2 * np.arange(SIZE, dtype=np.float32))
    np.testing.assert_array_equal(block.x, np.arange(SIZE, dtype=np.float32))
    assert 0 < report.claimed_s < report.seconds


def test_scratch_is_reported(opener):
    source = "import numpy as np\n" + body("scratch = np.empty(1 << 20)", "out[:] = 2 * x + 0 * scratch[0]")
    worker = opener.open()
    try:
        worker.load(source)
        assert worker.call(Block().lent, {}).scratch_bytes >= 8 << 20
    finally:
        worker.close()


def test_exception_names_its_line(opener):
    fault = outcome_of(opener, body("y = 1", "raise ValueError('no such shape')"))
    assert (fault.outcome, fault.line) == (Outcome.RUNTIME_ERROR, 3)
    assert "no such shape" in fault.text


def test_typing_error_is_a_compile_error_with_its_line(opener):
    fault = outcome_of(opener, DOUBLE.replace("2 * x[i]", "x[i].nothing"))
    assert (fault.outcome, fault.line) == (Outcome.COMPILE_ERROR, 7)


def test_missing_run_is_said(opener):
    assert "run" in outcome_of(opener, "x = 1\n").text


def test_hanging_candidate_is_stopped_at_its_deadline(opener):
    began = time.monotonic()
    fault = outcome_of(opener, body("while True:", "    pass"), deadline_s=1.0)
    assert fault.outcome is Outcome.TIMEOUT
    assert time.monotonic() - began < 15


def test_hang_inside_compiled_code_is_stopped(opener):
    source = DOUBLE.replace("out[i] = 2 * x[i]", "while x[0] < 1:\n            out[i] += 1")
    assert outcome_of(opener, source, deadline_s=2.0).outcome is Outcome.TIMEOUT


def test_store_beside_the_array_is_out_of_bounds(opener):
    source = DOUBLE.replace("range(x.shape[0])", "range(x.shape[0], x.shape[0] + 100000)").replace("x[i]", "1")
    fault = outcome_of(opener, source)
    assert (fault.outcome, fault.code) == (Outcome.OUT_OF_BOUNDS, "guard_page")
    assert fault.line == 10


def test_bounds_checks_turn_a_bad_index_into_out_of_bounds(opener):
    source = DOUBLE.replace("out[i] = 2 * x[i]", "out[i + 1] = 2 * x[i]")
    fault = outcome_of(opener, source, bounds_checks=True)
    assert (fault.outcome, fault.code) == (Outcome.OUT_OF_BOUNDS, "index_error")


def test_crash_elsewhere_is_a_runtime_error(opener):
    fault = outcome_of(opener, "import ctypes\n" + body("ctypes.string_at(8)"))
    assert (fault.outcome, fault.code) == (Outcome.RUNTIME_ERROR, "crash")
    assert "SIGSEGV" in fault.text


def test_memory_hog_is_over_limit(opener):
    source = "import numpy as np\n" + body("y = np.ones(1 << 28)", "out[:] = y[0]")
    assert outcome_of(opener, source, options={"data_bytes": 1 << 30}).outcome is Outcome.OVER_LIMIT


@pytest.mark.parametrize("ending", ["__import__('os')._exit(0)", "raise SystemExit(0)"])
def test_early_clean_exit_is_a_failure(opener, ending):
    fault = outcome_of(opener, body(ending))
    assert (fault.outcome, fault.code) == (Outcome.RUNTIME_ERROR, "early_exit")


def test_forged_answer_is_a_reward_hack(opener):
    lines = ("import socket, struct, json", "s = socket.socket(fileno=3)",
             "b = json.dumps({'id': 99}).encode()", "s.sendall(struct.pack('<I', len(b)) + b)", "s.detach()")
    assert outcome_of(opener, body(*lines)).outcome is Outcome.REWARD_HACK


def test_second_answer_is_a_reward_hack(opener):
    lines = ("import socket, struct, json", "s = socket.socket(fileno=3)", "b = json.dumps({'id': 2}).encode()",
             "s.sendall(2 * (struct.pack('<I', len(b)) + b))", "s.detach()")
    assert outcome_of(opener, body(*lines)).outcome is Outcome.REWARD_HACK


def test_closing_the_channel_is_not_an_answer(opener):
    fault = outcome_of(opener, body("import os", "os.close(3)", "while True: pass"))
    assert fault.outcome in (Outcome.REWARD_HACK, Outcome.RUNTIME_ERROR)


def test_flood_on_standard_output_does_no_harm(opener):
    worker, block = opener.open(deadline_s=30.0), Block()
    try:
        worker.load(escape.PYTHON + body("print('x' * (1 << 24), flush=True)", "out[:] = 2 * x"))
        worker.call(block.lent, {})
        np.testing.assert_array_equal(block.out, 2 * block.x)
    finally:
        worker.close()


def test_printed_control_characters_do_not_reach_the_sentence(opener):
    printed = r"os.write(2, b'\x1b[31mred\x1b[0m \x00 last words\n')"
    fault = outcome_of(opener, body("import os", printed, "os._exit(3)"))
    assert "last words" in fault.text
    assert not any(ord(c) < 32 for c in fault.text)


def test_a_text_that_cannot_be_written_down_is_cleaned(opener):
    fault = outcome_of(opener, body("raise ValueError('\\ud800 words')"))
    assert fault.text == "The candidate's process says: «ValueError: ? words»"


def test_numbers_that_no_float_holds_are_no_fault_of_the_judge(opener):
    forged = ("import json, os, struct", "b = json.dumps({'id': 2, 'claimed_s': 10**4000})",
              "os.write(3, struct.pack('<I', len(b)) + b.encode())", "import time", "time.sleep(60)")
    assert outcome_of(opener, body(*forged)).outcome is Outcome.REWARD_HACK


def test_helpers_forked_before_are_pinned_with_their_candidate(lenient):
    opener = lenient
    core = min(os.sched_getaffinity(0))
    forking = "import os\nif os.fork() == 0:\n    while True: os.sched_yield()\n"
    source = escape.PYTHON + forking + body("out[:] = 2 * x")
    before = candidate_processes(opener)
    worker = opener.open(deadline_s=30.0)
    try:
        worker.load(source)
        worker.pin([core], sorted(os.sched_getaffinity(0)))
        tree = sorted(candidate_processes(opener) - before)
        assert len(tree) >= 3  # keeper, candidate, helper
        assert sum(os.sched_getaffinity(pid) == {core} for pid in tree) >= len(tree) - 1
    finally:
        worker.close()


def test_candidates_are_the_first_to_die_where_memory_runs_out(opener):
    before = candidate_processes(opener)
    worker = opener.open(deadline_s=30.0)
    try:
        tree = candidate_processes(opener) - before
        scores = sorted(int(Path(f"/proc/{pid}/oom_score_adj").read_text()) for pid in tree)
        assert scores[-1] == 1000 and scores[0] < 1000  # the candidate; its keeper stays
    finally:
        worker.close()


def test_nothing_of_system_v_outlives_a_candidate(opener):
    source = body("import ctypes", "libc = ctypes.CDLL(None)",
                  "raise ValueError(f'{libc.shmget(7, 4096, 0o1666)} {libc.semget(7, 1, 0o1666)}')")
    assert outcome_of(opener, source).text == "The candidate's process says: «ValueError: -1 -1»"


def test_daemon_dies_with_its_candidate(lenient):
    opener = lenient
    source = escape.PYTHON + body("import os, time", "r, w = os.pipe()", "if os.fork() == 0:", "    os.setsid()",
                  "    if os.fork() == 0:", "        while True: time.sleep(60)", "    os._exit(0)", "out[:] = 2 * x")
    before = candidate_processes(opener)
    worker = opener.open(deadline_s=30.0)
    worker.load(source)
    worker.call(Block().lent, {})
    during = candidate_processes(opener)
    worker.close()
    assert len(during - before) >= 3  # keeper, candidate, daemon
    assert wait_until(lambda: not candidate_processes(opener) - before)


def candidate_processes(opener) -> set[int]:
    """Every process below the server."""
    parents = {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                words = (path / "stat").read_bytes().rpartition(b")")[2].split()
            except OSError:
                continue
            if words[0] != b"Z":
                parents[int(path.name)] = int(words[1])
    known = {opener.server_pid}
    for _ in range(len(parents)):
        grown = known | {pid for pid, parent in parents.items() if parent in known}
        if grown == known:
            break
        known = grown
    return known - {opener.server_pid}


def wait_until(condition, patience_s: float = 60.0) -> bool:
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        if condition():
            return True
    return condition()


def test_late_writes_do_not_happen_while_the_judge_reads(opener):
    """A thread goes on writing after the answer; the process is frozen, so the output stays as it is."""
    source = (escape.PYTHON + "import threading\n" + body("def more():", "    while True: out[:] += 1", "out[:] = 0",
                                          "threading.Thread(target=more, daemon=True).start()"))
    worker, block = opener.open(deadline_s=30.0), Block()
    try:
        worker.load(source)
        worker.call(block.lent, {})
        first = block.out.copy()
        assert all(np.array_equal(first, block.out) for _ in range(200))
    finally:
        worker.close()


def test_network_is_out_of_reach(opener):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        fault = outcome_of(opener, body("import socket", f"socket.create_connection(('127.0.0.1', {port}), 1)"))
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert fault.outcome is Outcome.RUNTIME_ERROR


@pytest.mark.parametrize("what", ["environ", "mem", "fd"])
def test_the_judge_is_out_of_reach(opener, what):
    path = f"/proc/{os.getpid()}/{what}"
    attempt = f"os.listdir('{path}')" if what == "fd" else f"open('{path}', 'rb').read(1)"
    fault = outcome_of(opener, body("import os", attempt))
    assert fault.outcome is Outcome.RUNTIME_ERROR


def test_files_of_the_evaluator_are_out_of_reach(opener, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    own = Path(modes.__file__).parents[1] / "run.py"
    for path in (secret, own):
        assert outcome_of(opener, body(f"open({str(path)!r}).read()")).outcome is Outcome.RUNTIME_ERROR


def test_programs_cannot_be_executed(opener):
    assert outcome_of(opener, body("import os", "os.execv('/bin/true', ['true'])")).outcome is Outcome.RUNTIME_ERROR


def test_environment_holds_nothing_of_the_judge(opener, monkeypatch):
    monkeypatch.setenv("KERNELOPT_SECRET_FOR_TEST", "secret")
    fault = outcome_of(opener, body("import os", "raise ValueError(sorted(os.environ))"))
    assert "KERNELOPT" not in fault.text


def test_close_is_idempotent_and_a_closed_worker_says_so(opener):
    worker = opener.open()
    worker.close()
    worker.close()
    with pytest.raises(Exception, match="closed"):
        worker.load(DOUBLE)
