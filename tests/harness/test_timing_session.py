"""What a candidate may try against the clock, in its sandbox: every trick is charged, seen or of no use."""

from __future__ import annotations

import pytest

from harness.backends.numba.stages import compile_request, smallest_case
from harness.domain.verdict import Reason
from harness.domain.vocabulary import Backend, Outcome, Stage
from harness.evaluation import sandbox
from harness.evaluation.judge.oracle import InvalidReference
from harness.evaluation.run import Refused
from harness.evaluation.timing import figures
from harness.evaluation.timing.record import Record, ShapeRecord
from harness.evaluation.timing.rings import Rings
from harness.evaluation.timing.session import Session
from harness.evaluation.timing.sides import AGAIN, CANDIDATE, Side
from harness.evaluation.timing.statistics import median
from harness.hardware.cores import reserve
from harness.operators import registry
from harness.operators.base import ShapePoint
from tests.harness import escape

SPEC = registry.get("rms_norm")
POINT = ShapePoint("64x512", {"rows": 64, "cols": 512}, 1.0, {"eps": 1e-6})
PLAIN = escape.PYTHON + '''
import time, threading

def compute(x, weight, out, eps):
    for row in range(x.shape[0]):
        scale = (x[row] * x[row]).mean()
        out[row] = x[row] / (scale + eps) ** 0.5 * weight
'''
HONEST = PLAIN + '''
def run(x, weight, out, *, eps):
    compute(x, weight, out, eps)
'''
SWEEPS = 4


@pytest.fixture
def session(monkeypatch):
    monkeypatch.setattr("harness.evaluation.timing.rings.MOST_SLOTS", 6)
    rings = Rings(SPEC, (POINT,), "float32", ("normal",), 1, 1 << 20)
    opened = Session(
        sandbox.opener(str(Backend.NUMBA)), (POINT,), rings, stage=Stage.RECHECK, cores=reserve(),
        compile_request=compile_request(SPEC, smallest_case(SPEC)), deadline_s=20.0,
    )
    yield opened
    opened.close()
    rings.close()


def timed(session: Session, candidate: str, opponent: str = HONEST) -> ShapeRecord:
    """One round of ``candidate`` against ``opponent``."""
    record = Record()
    session.round({CANDIDATE: candidate, AGAIN: opponent}, record, SWEEPS)
    return record.shapes[POINT.label]


def us(shape: ShapeRecord, side: str) -> float:
    return median([value for one in shape.rounds[side] for value in one])


@pytest.mark.sandbox
def test_a_round_leaves_every_kind_of_sample(session):
    shape = timed(session, HONEST)
    assert [len(one) for one in (*shape.rounds[CANDIDATE], *shape.rounds[AGAIN])] == [SWEEPS] * 2
    assert len(shape.hot[CANDIDATE]) == len(shape.hot[AGAIN]) == 2
    assert len(shape.repeated[CANDIDATE]) == len(shape.cold) == len(shape.speed) == len(shape.disturbed) == 1
    assert 0 < shape.speed[0] <= 1.0
    assert all(1 <= calls <= 6 for calls in shape.calls[0]) and len(shape.calls[0]) == SWEEPS


@pytest.mark.sandbox
def test_a_deadline_that_passes_while_timing_ends_the_evaluation(session, monkeypatch):
    asked = []

    def passed() -> None:
        asked.append(1)
        if len(asked) == 3:
            raise Refused(Outcome.TIMEOUT, Reason("timeout", Stage.RECHECK, "too late"))

    monkeypatch.setattr(session, "_ensure_time", passed)
    with pytest.raises(Refused) as caught:
        timed(session, HONEST)
    assert (caught.value.outcome, len(asked)) == (Outcome.TIMEOUT, 3)


FAST_CLOCK = (escape.PYTHON + "import time\nreal = time.perf_counter\n"
              "time.perf_counter = lambda: real() / 100\n" + HONEST)


@pytest.mark.sandbox
def test_a_forged_clock_changes_no_figure_and_is_a_lead(session):
    record = Record()
    session.round({CANDIDATE: FAST_CLOCK, AGAIN: HONEST}, record, SWEEPS)
    shape = record.shapes[POINT.label]
    claimed = us(shape, CANDIDATE) * median(shape.claims[CANDIDATE])
    assert us(shape, CANDIDATE) > 10 * claimed
    samples = figures.samples_of(record, (POINT,), {"baseline": AGAIN}, AGAIN)
    work = {POINT.label: figures.Work(1, 1, 1e-9, 1e-9)}
    timing = figures.timing_of(samples, work, evidence=figures.Evidence.BOUNDED, longer=False)
    assert any("own clock" in text for text in figures.suspicious(timing, work, record))


AFTERWARDS = PLAIN + '''
def spin():
    until = time.thread_time() + 0.05
    while time.thread_time() < until:
        pass

def run(x, weight, out, *, eps):
    compute(x, weight, out, eps)
    threading.Thread(target=spin).start()
'''


@pytest.mark.sandbox
def test_work_that_goes_on_after_the_answer_is_charged_to_the_calls(session):
    shape = timed(session, AFTERWARDS)
    assert us(shape, CANDIDATE) > us(shape, AGAIN)


LATE = PLAIN + '''
def late(*arguments):
    time.sleep(0.02)
    compute(*arguments)

def run(x, weight, out, *, eps):
    threading.Thread(target=late, args=(x, weight, out, eps)).start()
'''


@pytest.mark.sandbox
def test_an_answer_that_comes_after_the_clock_is_refused(session):
    with pytest.raises(Refused) as caught:
        timed(session, LATE)
    assert (caught.value.outcome, caught.value.reasons[0].code) == (Outcome.REWARD_HACK, "timed_output_wrong")


AHEAD = PLAIN + '''
known = {}

def run(x, weight, out, *, eps):
    place = x.ctypes.data
    if place not in known:
        compute(x, weight, out, eps)
        known[place] = out.copy()
    out[:] = known[place]
'''
"""Answers that lay ready before the question: they belong to the contents of an earlier one."""


@pytest.mark.sandbox
def test_work_done_before_the_question_finds_only_old_contents(session):
    with pytest.raises(Refused) as caught:
        timed(session, AHEAD)
    assert (caught.value.outcome, caught.value.reasons[0].code) == (Outcome.REWARD_HACK, "timed_output_wrong")


class Worker:
    """Spends seconds on its cores when it wakes, before it is asked, and after its answer until it is frozen."""

    def __init__(self, before_s: float, after_s: float) -> None:
        self.cpu_s, self._before_s, self._after_s = 3.0, before_s, after_s

    def resume(self) -> None:
        self._before_s, self._woken_s = 0.0, self._before_s

    def exchange(self, request):
        return {"claimed_s": 0.0}

    def freeze(self) -> None:
        self.cpu_s += self._woken_s + self._after_s

    def check_quiet(self) -> None:
        pass


@pytest.mark.parametrize(("before_s", "after_s", "charged"), [(40.0, 0.0, 40.0), (0.0, 30.0, 30.0), (40.0, 30.0, 70.0)])
def test_whatever_a_process_spends_from_its_waking_on_is_charged(before_s, after_s, charged):
    assert Side(CANDIDATE, Worker(before_s, after_s), 0.0).timed([0])[0] == charged


SLOW_START = PLAIN + '''
calls = [0]

def run(x, weight, out, *, eps):
    calls[0] += 1
    if calls[0] <= 4:
        time.sleep(0.05)
    compute(x, weight, out, eps)
'''


@pytest.mark.sandbox
def test_a_process_that_is_slow_only_while_it_warms_up_gets_as_many_calls_as_the_others(session):
    first, *others = timed(session, SLOW_START).calls[0]
    assert first <= 2
    assert max(others) > 2


KEEPS = PLAIN + '''
known = {}

def run(x, weight, out, *, eps):
    key = x.tobytes()
    if key not in known:
        time.sleep(0.02)
        compute(x, weight, out, eps)
        known[key] = out.copy()
    out[:] = known[key]
'''


@pytest.mark.sandbox
def test_remembered_answers_gain_nothing_and_are_a_lead(session):
    record = Record()
    session.round({CANDIDATE: KEEPS, AGAIN: HONEST}, record, SWEEPS)
    shape = record.shapes[POINT.label]
    assert min(us(shape, CANDIDATE), median(shape.hot[CANDIDATE])) > 20_000 > shape.repeated[CANDIDATE][0]
    samples = figures.samples_of(record, (POINT,), {"baseline": AGAIN}, AGAIN)
    work = {POINT.label: figures.Work(1, 1, 1e-9, 1e-9)}
    timing = figures.timing_of(samples, work, evidence=figures.Evidence.BOUNDED, longer=False)
    assert any("kept between calls" in text for text in figures.suspicious(timing, work, record))


TAIL = PLAIN + '''
calls = [0]

def run(x, weight, out, *, eps):
    calls[0] += 1
    compute(x, weight, out, eps)
    if calls[0] > 3:
        out[-1, -1] += 1
'''


@pytest.mark.sandbox
def test_one_wrong_value_is_found_after_the_sweep_in_what_was_copied_then(session, monkeypatch):
    monkeypatch.setattr("harness.evaluation.judge.ring.Samples.wrong", lambda *_: False)
    with pytest.raises(Refused) as caught:
        timed(session, TAIL)
    first, detail = caught.value.reasons
    assert (caught.value.outcome, first.code, detail.index) == (Outcome.REWARD_HACK, "timed_output_wrong", (63, 511))


@pytest.mark.sandbox
def test_a_reference_that_fails_is_not_the_candidates_fault(session, monkeypatch):
    def broken(*_: object) -> None:
        raise InvalidReference("the reference fails")

    monkeypatch.setattr("harness.evaluation.judge.ring.expect", broken)
    with pytest.raises(Refused) as caught:
        timed(session, HONEST)
    assert caught.value.outcome is Outcome.INVALID_REFERENCE


@pytest.mark.sandbox
def test_what_is_wrong_on_special_values_in_the_timed_process_alone_is_refused(session):
    """As of a kernel that tells the judge's process by its filled memory, or by anything else."""
    careless = PLAIN + """
import numpy as np

def run(x, weight, out, *, eps):
    compute(np.where(np.isnan(x), np.float32(0.0), x), weight, out, eps)
"""
    with pytest.raises(Refused) as caught:
        timed(session, careless)
    assert caught.value.outcome is Outcome.REWARD_HACK
    assert [reason.code for reason in caught.value.reasons][:2] == ["timed_output_wrong", "nan_wrong"]
