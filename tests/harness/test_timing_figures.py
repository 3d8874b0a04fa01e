"""Figures, floors and limits from given samples."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.domain.samples import PairedRound, Samples, ShapeSamples
from harness.domain.vocabulary import Evidence
from harness.evaluation.timing.figures import Work, impossible, samples_of, suspicious, timing_of, unsteady
from harness.evaluation.timing.record import Record
from harness.evaluation.timing.sides import AGAIN, CANDIDATE
from harness.operators.base import ShapePoint

POINT = ShapePoint("s", {"rows": 1}, 1.0)


def samples(mine: tuple[float, ...], other: tuple[float, ...] = (200.0,) * 4) -> Samples:
    rounds = (PairedRound(other, mine),) * 5
    return Samples((ShapeSamples("s", 1.0, {"baseline": rounds}, (PairedRound(other, other),) * 5, cold=(150.0,),
                                 first_call=1e5, hot={"candidate": (80.0,)}),))


def timing(mine: tuple[float, ...], work: Work):
    return timing_of(samples(mine), {"s": work}, evidence=Evidence.BOUNDED, longer=False)


def test_figures_in_their_units():
    found = timing((100.0,) * 4, Work(bytes=1_000_000, flops=2_000_000, floor_s=50e-6, least_s=40e-6))
    (shape,) = found.shapes
    assert (shape.median_us, shape.cold_us, shape.hot_us) == (100.0, 150.0, 80.0)
    assert shape.gbps == pytest.approx(10.0)
    assert shape.tflops == pytest.approx(0.02)
    assert shape.roof_share == pytest.approx(0.5)
    assert (found.rounds, found.pairs) == (5, 4)
    assert found.overall["baseline"].ratio == pytest.approx(2.0)


@pytest.mark.parametrize(("least_us", "refused", "flagged"), [
    (90.0, False, False), (104.0, False, False), (108.0, False, True), (112.0, True, False), (500.0, True, False),
])
def test_times_below_the_floor(least_us, refused, flagged):
    work = {"s": Work(1000, 1000, floor_s=least_us * 1e-6, least_s=least_us * 1e-6)}
    found = timing((100.0,) * 4, work["s"])
    assert bool(impossible(found, work)) is refused
    assert bool(suspicious(found, work, Record())) is flagged


@pytest.mark.parametrize(("claim", "flagged"), [(1.0, False), (0.9, False), (0.5, True)])
def test_a_process_whose_clock_disagrees_is_flagged(claim, flagged):
    record = Record()
    record.shapes["s"].claims["candidate"] = [claim] * 5
    work = {"s": Work(1000, 1000, 1e-6, 1e-6)}
    assert bool(suspicious(timing((100.0,) * 4, work["s"]), work, record)) is flagged


@pytest.mark.parametrize(("mine", "other", "flagged"), [
    (0.75, 0.94, False), (0.75, 1.0, True), (0.95, 0.95, False), (0.2, 0.9, True), (1.5, 1.0, True),
])
def test_processes_that_all_wake_late_are_no_lead(mine, other, flagged):
    record = Record()
    for side, claim, us in ((CANDIDATE, mine, 100.0), ("baseline", other, 400.0)):
        record.shapes["s"].claims[side] = [claim] * 5
        record.shapes["s"].rounds[side] = [(us, us)] * 5
    work = {"s": Work(1000, 1000, 1e-6, 1e-6)}
    assert bool(suspicious(timing((100.0,) * 4, work["s"]), work, record)) is flagged


@pytest.mark.parametrize(("mine", "other", "flagged"), [
    (90.0, 90.0, False), (60.0, 100.0, False), (40.0, 100.0, True), (1.0, 50.0, True), (50.0, 1.0, False),
])
def test_a_gain_from_repeated_contents_that_no_other_kernel_has_is_flagged(mine, other, flagged):
    record = Record()
    for side, repeated in ((CANDIDATE, mine), ("baseline", other), (AGAIN, other)):
        record.shapes["s"].hot[side] = [100.0] * 2
        record.shapes["s"].repeated[side] = [repeated]
    work = {"s": Work(1000, 1000, 1e-6, 1e-6)}
    assert bool(suspicious(timing((100.0,) * 4, work["s"]), work, record)) is flagged


@pytest.mark.parametrize(("mine", "other", "broken"), [
    ((100.0, 100.0, 100.0, 100.0), (200.0,) * 4, False),
    ((80.0, 120.0, 90.0, 130.0), (200.0,) * 4, True),
    ((80.0, 120.0, 90.0, 130.0), (150.0, 250.0, 190.0, 300.0), False),
])
def test_only_a_kernel_that_is_alone_unsteady_breaks_the_limit(mine, other, broken):
    assert bool(unsteady(samples(mine, other), 0.10, "baseline")) is broken


@pytest.mark.parametrize(("rounds_apart", "broken"), [(3, False), (4, True)])
def test_one_bad_moment_of_the_machine_breaks_no_limit(rounds_apart, broken):
    steady, unsteady_round = (100.0, 100.0, 100.0, 100.0), (80.0, 120.0, 90.0, 130.0)
    other = (200.0,) * 4
    rounds = tuple(PairedRound(other, unsteady_round if at < rounds_apart else steady) for at in range(5))
    shape = replace(samples(steady).shapes[0], versus={"baseline": rounds})
    assert bool(unsteady(Samples((shape,)), 0.10, "baseline")) is broken


def test_samples_name_roles_not_processes():
    record = Record()
    shape = record.shapes["s"]
    shape.speed, shape.disturbed = [1.0, 0.8], ["", "slow"]
    for side, value in ((CANDIDATE, 1.0), ("baseline", 2.0), (AGAIN, 2.1)):
        shape.rounds[side] = [(value, value)] * 5
        shape.hot[side] = [value]
        shape.repeated[side] = [value / 2]
        record.first_calls[side] = [value]
    found = samples_of(record, (POINT,), {"baseline": "baseline", "incumbent": "baseline"}, "baseline").shapes[0]
    assert set(found.versus) == {"baseline", "incumbent"}
    assert found.versus["incumbent"] == found.versus["baseline"]
    assert found.aa[0] == PairedRound((2.0, 2.0), (2.1, 2.1))
    assert set(found.hot) == set(found.repeated) == {"candidate", "baseline", "incumbent"}
    assert (found.repeated["candidate"], found.speed, found.disturbed) == ((0.5,), (1.0, 0.8), ("", "slow"))


def test_rounds_are_appended_in_every_list():
    whole, one = Record(), Record(disturbed=["a", "b"], noisy=True)
    one.first_calls[CANDIDATE] = [1.0]
    shape = one.shapes["s"]
    for name in ("rounds", "hot", "repeated", "claims"):
        getattr(shape, name)[CANDIDATE] = [1.0]
    shape.cold, shape.calls, shape.speed, shape.disturbed = [1.0], [(2,)], [0.9], ["a"]
    whole.add(one)
    whole.add(one)
    assert (whole.disturbed, whole.noisy, whole.first_calls[CANDIDATE]) == (["a", "a"], True, [1.0, 1.0])
    found = whole.shapes["s"]
    lists = [getattr(found, name) for name in ("rounds", "hot", "repeated", "claims")]
    assert all(len(one[CANDIDATE]) == 2 for one in lists)
    assert all(len(getattr(found, name)) == 2 for name in ("cold", "calls", "speed", "disturbed"))
