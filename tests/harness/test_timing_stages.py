"""The decisions of screening and recheck around a session that measures what the test says."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace

import pytest

from harness.domain.codec import check_schema, from_document, to_document
from harness.domain.digest import digest_source
from harness.domain.goal import Goal, Limits
from harness.domain.request import EvaluationRequest, OperatorRef, Opponent, SourceRef
from harness.domain.samples import Samples
from harness.domain.vocabulary import Backend, Comparison, Evidence, Outcome, Purpose, Role
from harness.evaluation.run import Refused, Run
from harness.evaluation.timing import stages
from harness.evaluation.timing.rings import Ring
from harness.evaluation.timing.session import Session
from harness.evaluation.timing.sides import CANDIDATE
from harness.hardware.detect import hardware_name
from harness.hardware.roofs import Level, Roofs
from harness.operators import registry
from harness.operators.base import ShapePoint

SPEC = registry.get("rms_norm")
POINT = ShapePoint("64x512", {"rows": 64, "cols": 512}, 1.0, {"eps": 1e-6})
HIGH_ROOF = Roofs((Level(1 << 20, 1e12, 1e12),), 1e15, 1)
Times = Callable[[int, str], tuple[float, ...]]
"""Microseconds of one side in one round, counted from 0."""


class FakeSession(Session):
    """Rounds that leave what ``times`` says; ``disturb`` names the attempts that something disturbs."""

    def __init__(self, times: Times, disturb: dict[int, str] | None = None, *, noisy: bool = False) -> None:
        self.rings = {POINT.label: Ring([], None, 8 << 20, 1)}  # type: ignore[arg-type]
        self._overhead_s, self._times, self._disturb, self._noisy = 5e-5, times, disturb or {}, noisy
        self.attempts, self.kept, self.sweeps = 0, 0, []

    def round(self, sources, record, sweeps):
        shape = record.shapes[POINT.label]
        text = self._disturb.get(self.attempts, "")
        for side in sources:
            values = self._times(self.kept, side)
            shape.rounds[side].append(tuple((values * sweeps)[:sweeps]))
            shape.hot[side].append(values[0] / 2)
            shape.repeated[side].append(values[0] / 2)
            record.first_calls[side].append(1e5)
        shape.cold.append(2 * self._times(self.kept, CANDIDATE)[0])
        shape.speed.append(0.99)
        shape.disturbed.append(text)
        record.disturbed += [text] if text else []
        record.noisy |= bool(text) and self._noisy
        self.attempts += 1
        self.kept += not text
        self.sweeps.append(sweeps)

    def close(self):
        pass


@pytest.fixture
def judged(monkeypatch):
    """``judged(session)`` is a run whose stages time with it."""
    monkeypatch.setattr(stages, "roofs", lambda **_: HIGH_ROOF)
    monkeypatch.setattr(stages.telemetry, "load_average", lambda: 0.0)

    def make(session: FakeSession, limits: Limits | None = None, against: str | None = "baseline") -> Run:
        monkeypatch.setattr(stages, "_session", lambda *_: contextlib.nullcontext(session))
        goal = Goal(operator=SPEC.name, backend=Backend.NUMBA, hardware=hardware_name(), workload="llm",
                    limits=limits or Limits())
        request = EvaluationRequest(
            job="j", nonce="n", purpose=Purpose.PROBE, operator=OperatorRef(SPEC.name, SPEC.version),
            backend=Backend.NUMBA, hardware=hardware_name(), workload="llm", goal=goal,
            candidate=SourceRef(digest_source("mine"), "mine"),
            against=() if against is None else (Opponent(Role.BASELINE, digest_source(against), against),),
        )
        workload = replace(SPEC.workloads["llm"], shapes={Backend.NUMBA: (POINT,)})
        return Run(request=request, spec=SPEC, workload=workload, open_workers=lambda _: None,  # type: ignore[arg-type]
                   progress=lambda *_: None)

    return make


def faster_by(*ratios: float) -> Times:
    """The candidate is faster by one ratio per round, in turn; everything else takes 100 us."""
    return lambda at, side: (100.0 / ratios[at % len(ratios)] if side == CANDIDATE else 100.0,)


def test_a_clear_win_needs_five_rounds_and_its_evidence_is_the_judges_clock(judged):
    session = FakeSession(faster_by(1.5))
    run = judged(session)
    stages.recheck(run)
    assert run.comparison is Comparison.FASTER
    assert (run.timing.rounds, run.timing.longer, run.timing.evidence) == (stages.ROUNDS, False, Evidence.BOUNDED)
    assert session.sweeps == [stages.SWEEPS] * stages.ROUNDS
    assert run.clocks["overhead_us"] == pytest.approx(50.0)


def test_a_promising_cannot_tell_is_measured_twice_as_long_which_decides(judged):
    session = FakeSession(faster_by(1.06, 1.05, 1.07, 1.04, 0.98))
    run = judged(session)
    stages.recheck(run)
    assert session.attempts == 2 * stages.ROUNDS
    assert (run.timing.rounds, run.timing.longer) == (2 * stages.ROUNDS, True)
    assert run.comparison is Comparison.FASTER


@pytest.mark.parametrize("ratio", [1.0, 0.97])
def test_what_does_not_promise_is_not_measured_again(judged, ratio):
    session = FakeSession(faster_by(ratio))
    stages.recheck(judged(session))
    assert session.attempts == stages.ROUNDS


def test_a_clearly_slower_kernel_gets_fewer_pairs(judged):
    session = FakeSession(faster_by(0.5))
    run = judged(session)
    stages.benchmark(run)
    assert run.clocks["screening_ratio"] == pytest.approx(0.5)
    stages.recheck(run)
    assert set(session.sweeps) == {stages.SCREENING_SWEEPS}
    assert run.comparison is Comparison.SLOWER


def test_disturbed_rounds_are_measured_again_and_leave_no_trace(judged):
    session = FakeSession(faster_by(1.5), {0: "stolen", 3: "stolen"})
    run = judged(session)
    stages.recheck(run)
    assert session.attempts == stages.ROUNDS + 2
    assert run.samples.shapes[0].disturbed == ("",) * stages.ROUNDS
    assert not run.notes


def test_rounds_that_stay_disturbed_are_kept_and_said(judged):
    session = FakeSession(faster_by(1.5), dict.fromkeys(range(20), "stolen"))
    run = judged(session)
    stages.recheck(run)
    assert session.attempts == stages.ROUNDS + stages.REPEATS
    assert [note.code for note in run.notes] == ["noisy_machine"]
    assert run.samples.shapes[0].disturbed == ("stolen",) * stages.ROUNDS


def test_samples_carry_all_that_the_plots_draw(judged):
    run = judged(FakeSession(faster_by(1.5)))
    stages.recheck(run)
    document = to_document(run.samples)
    check_schema(document, "samples")
    assert from_document(document, Samples) == run.samples
    (shape,) = run.samples.shapes
    assert len(shape.speed) == len(shape.disturbed) == len(shape.versus["baseline"]) == stages.ROUNDS
    assert set(shape.hot) == set(shape.repeated) == {"candidate", "baseline"}


def unsteady(at: int, side: str) -> tuple[float, ...]:
    return (60.0, 100.0, 75.0, 130.0) if side == CANDIDATE else (100.0, 101.0, 99.0, 100.0)


def test_an_unsteady_kernel_breaks_the_stability_limit(judged):
    run = judged(FakeSession(unsteady), Limits(cv=0.10))
    with pytest.raises(Refused) as caught:
        stages.recheck(run)
    assert (caught.value.outcome, caught.value.reasons[0].code) == (Outcome.OVER_LIMIT, "cv_limit")
    assert run.timing is None


@pytest.mark.parametrize(("noisy", "refused"), [(True, False), (False, True)])
def test_only_what_others_do_excuses_an_unsteady_kernel(judged, noisy, refused):
    session = FakeSession(unsteady, dict.fromkeys(range(20), "switched"), noisy=noisy)
    run = judged(session, Limits(cv=0.10))
    with pytest.raises(Refused) if refused else contextlib.nullcontext():
        stages.recheck(run)
    assert (run.timing is None) is refused


def test_a_throughput_floor_is_a_hard_limit(judged):
    run = judged(FakeSession(faster_by(1.5)), Limits(throughput_floor=1e6))
    with pytest.raises(Refused) as caught:
        stages.recheck(run)
    assert (caught.value.outcome, caught.value.reasons[0].code) == (Outcome.OVER_LIMIT, "throughput_floor")
    assert run.timing is None


LOW_ROOF = Roofs((Level(1 << 20, 1e8, 1e8),), 1e15, 1)


@pytest.mark.parametrize("stage", [stages.benchmark, stages.recheck])
def test_a_time_below_the_floor_is_refused_in_both_stages(judged, monkeypatch, stage):
    monkeypatch.setattr(stages, "roofs", lambda **_: LOW_ROOF)
    with pytest.raises(Refused) as caught:
        stage(judged(FakeSession(faster_by(1.5))))
    assert (caught.value.outcome, caught.value.reasons[0].code) == (Outcome.REWARD_HACK, "below_floor")


def test_nobody_is_refused_for_roofs_that_were_measured_in_a_busy_hour(judged, monkeypatch):
    asked = []
    monkeypatch.setattr(stages, "roofs", lambda *, afresh: asked.append(afresh) or (HIGH_ROOF if afresh else LOW_ROOF))
    run = judged(FakeSession(faster_by(1.5)))
    stages.recheck(run)
    assert asked == [False, True]
    assert run.timing is not None


def test_without_an_opponent_nothing_is_compared(judged):
    run = judged(FakeSession(faster_by(1.5)), against=None)
    stages.recheck(run)
    assert (run.comparison, run.score) == (Comparison.NONE, None)
    assert run.samples.shapes[0].aa


def test_screening_and_recheck_share_rings_that_end_with_the_recheck(judged, monkeypatch):
    run = judged(FakeSession(faster_by(1.5)))
    run.seed = 5
    monkeypatch.setattr("harness.evaluation.timing.rings.MOST_SLOTS", 4)
    points = run.workload.shapes[Backend.NUMBA]
    first = stages._rings(run, points)
    assert stages._rings(run, points) is first
    assert [len(ring) for ring in first.values()] == [4]
    stages.recheck(run)
    assert (run.bench, dict(first)) == (None, {})
