"""Frames, filters, grades and sentences of the sandbox: everything that needs no process."""

from __future__ import annotations

import os
import signal
import socket
import struct
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.domain.errors import UsageError
from harness.domain.vocabulary import Outcome
from harness.domain.words import plain
from harness.evaluation.sandbox import frames, modes, proof, seccomp, tree
from harness.evaluation.sandbox.verdicts_on_faults import crashed, said
from harness.evaluation.sandbox.worker import claimed_seconds
from harness.evaluation.timing.sides import Side

ALL_WALLS = ("pidns", "mountns", "netns", "limits", "uid", "no_new_privs", "landlock", "seccomp")


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text()
json_values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


@given(json_values)
def test_documents_survive_the_socket(document):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        frames.send(ours, document)
        assert frames.receive(theirs)[0] == document


def test_descriptors_travel_with_their_document(pair):
    read, write = os.pipe()
    frames.send(pair[0], {"a": 1}, [write])
    os.close(write)
    _, (received,) = frames.receive(pair[1])
    os.write(received, b"x")
    assert os.read(read, 1) == b"x"
    os.close(received)
    os.close(read)


def test_a_silent_peer_is_late_and_a_closed_one_closed(pair):
    with pytest.raises(frames.Late):
        frames.receive(pair[1], deadline=time.monotonic() + 0.01)
    pair[0].close()
    with pytest.raises(frames.Closed):
        frames.receive(pair[1], deadline=time.monotonic() + 1)


@pytest.mark.parametrize("body", [b"{", b"[" * 100_000, b"\xff\xfe", b"[1" + b"0" * 40 + b"]"])
def test_what_is_no_document_is_a_frame_error(body):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(5)
        ours.sendall(struct.pack("<I", len(body)) + body)
        with pytest.raises(frames.FrameError):
            frames.receive(theirs)


@pytest.mark.parametrize("body", [b'{"\\ud800": ["\\udfff x", 1]}', b'{"\xed\xa0\x80": ["\xed\xbf\xbf x", 1]}'])
def test_half_of_a_surrogate_pair_does_not_get_in(pair, body):
    pair[0].sendall(struct.pack("<I", len(body)) + body)
    assert frames.receive(pair[1])[0] == {"?": ["? x", 1]}


def test_descriptors_of_an_untrusted_peer_are_dropped(pair):
    before = len(list(Path("/proc/self/fd").iterdir()))
    frames.send(pair[0], {"a": 1}, [pair[0].fileno()] * 100)
    assert frames.receive(pair[1], descriptors=False) == ({"a": 1}, [])
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_an_announced_giant_is_refused_before_it_is_read(pair):
    pair[0].sendall(struct.pack("<I", 1 << 31))
    with pytest.raises(frames.FrameError, match="limit"):
        frames.receive(pair[1])


@pytest.mark.parametrize("machine", list(seccomp.ARCHITECTURES))
def test_filters_are_whole_and_end_by_allowing(machine):
    code = seccomp.program(machine)
    instructions = [struct.unpack_from("<HBBI", code, at) for at in range(0, len(code), 8)]
    assert len(code) % 8 == 0 and len(instructions) < 4096
    assert instructions[-1] == (seccomp.RETURN, 0, 0, seccomp.ALLOW)
    for at, (operation, yes, no, _) in enumerate(instructions):
        if operation != seccomp.LD_WORD and operation != seccomp.RETURN:
            assert at + 1 + max(yes, no) < len(instructions)


@pytest.mark.parametrize(("standing", "escaped", "level"), [
    (ALL_WALLS, set(), 3),
    (ALL_WALLS, {"signal_judge"}, 2),
    (ALL_WALLS, {"udp"}, 1),
    (ALL_WALLS, {"read_secret"}, 1),
    (ALL_WALLS, {"large_file"}, 0),
    (ALL_WALLS, {"signal_keeper"}, 0),
    (("limits", "landlock", "seccomp"), set(), 2),
    (("limits", "seccomp"), set(), 1),
    ((), set(), 0),
])
def test_the_level_is_what_held(standing, escaped, level):
    found = proof._grade(standing, escaped, tree_dead=True, foreign_uid="uid" in standing, trouble="")
    assert found.level == level


def test_a_user_that_only_looks_foreign_is_none():
    """In a user namespace without a map a process sees itself as somebody else."""
    found = proof._grade(("limits", "landlock", "seccomp"), set(), tree_dead=True, foreign_uid=True, trouble="")
    assert found.level == 2


def test_a_surviving_daemon_means_no_isolation():
    assert proof._grade(ALL_WALLS, set(), tree_dead=False, foreign_uid=True, trouble="").level == 0


@given(st.text(max_size=3000))
def test_sentences_hold_no_control_characters_and_no_floods(text):
    cleaned = plain(text)
    assert len(cleaned) <= 800
    assert not any(ord(c) < 32 and c not in "\n\t" for c in cleaned)
    assert not any(c in cleaned for c in "\u202e\u2066\u200b\x7f")


@given(json_values)
def test_whatever_a_process_says_becomes_a_refusal(document):
    fault = said(document)
    assert fault.outcome is not Outcome.PASSED
    assert fault.text and fault.code
    assert fault.line is None or fault.line > 0


def test_a_process_cannot_claim_to_have_passed_or_blame_the_judge():
    for outcome in ("passed", "infra_error", "invalid_reference", "no_change", "unsupported_here", "unsupported"):
        assert said({"outcome": outcome, "text": "x"}).outcome is Outcome.RUNTIME_ERROR


def test_only_a_mode_that_can_meet_a_gap_may_report_it():
    gap = {"outcome": "unsupported_here", "text": "bfloat16 dot"}
    assert said(gap, modes.mode("triton-interpret").declines).outcome is Outcome.UNSUPPORTED_HERE
    assert said(gap, modes.mode("numba").declines).outcome is Outcome.RUNTIME_ERROR


@given(json_values | st.text(st.characters(categories=["Cs", "Cf", "L"])))
def test_every_sentence_can_be_written_down(value):
    fault = said({"outcome": "runtime_error", "text": value, "line": value})
    assert fault.text.encode("utf-8")
    assert fault.line is None or fault.line < 1 << 20


@pytest.mark.parametrize(("claim", "seconds"), [
    (0.5, 0.5), (2, 2.0), (True, None), (10**4000, None), (-(10**400), None), (float("inf"), None),
    (float("nan"), None), ("1", None), (None, None),
])
def test_a_claimed_time_is_a_plain_number_or_none(claim, seconds):
    assert claimed_seconds({"claimed_s": claim}) == seconds


def test_the_clock_of_another_process_counts_what_it_spent():
    done, ready = os.pipe()
    pid = os.fork()
    if pid == 0:
        while time.process_time() < 0.05:
            pass
        os.write(ready, b"x")
        signal.pause()
    try:
        os.read(done, 1)
        assert tree.cpu_seconds([pid]) >= 0.05
        assert tree.cpu_seconds([]) == 0.0
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(done)
        os.close(ready)


class LateWorker:
    """Answers at once and spends ``late_s`` more on its cores before it is frozen."""

    def __init__(self, late_s: float) -> None:
        self.cpu_s = 7.0
        self._late_s = late_s

    def exchange(self, request):
        return {"claimed_s": 0.0}

    def freeze(self) -> None:
        self.cpu_s += self._late_s

    def resume(self) -> None:
        pass

    check_quiet = resume


@pytest.mark.parametrize(("threads", "charged"), [(1, 60.0), (4, 15.0)])
def test_work_after_the_answer_is_charged(threads, charged):
    assert Side("candidate", LateWorker(60.0), 0.0, threads).batch([], ())[0] == charged


@pytest.mark.parametrize(("status", "in_guard", "outcome", "code"), [
    (0, False, Outcome.RUNTIME_ERROR, "early_exit"),
    (3, True, Outcome.RUNTIME_ERROR, "early_exit"),
    (-signal.SIGSEGV, True, Outcome.OUT_OF_BOUNDS, "guard_page"),
    (-signal.SIGSEGV, False, Outcome.RUNTIME_ERROR, "crash"),
    (-signal.SIGBUS, True, Outcome.OUT_OF_BOUNDS, "guard_page"),
    (-signal.SIGABRT, True, Outcome.RUNTIME_ERROR, "crash"),
    (-signal.SIGKILL, False, Outcome.OVER_LIMIT, "memory_limit"),
    (-99, False, Outcome.RUNTIME_ERROR, "crash"),
])
def test_ends_are_classified(status, in_guard, outcome, code):
    fault = crashed(status, 'Fatal Python error\n  File "candidate.py", line 7 in run\n', in_guard=in_guard)
    assert (fault.outcome, fault.code, fault.line) == (outcome, code, 7)


def test_unknown_modes_are_named():
    with pytest.raises(UsageError, match="triton-plan"):
        modes.mode("cuda")


def test_modes_name_modules_that_exist():
    root = Path(modes.__file__).parents[3]
    for mode in modes.MODES.values():
        assert root.joinpath(*mode.module.split(".")).with_suffix(".py").exists(), mode.name
