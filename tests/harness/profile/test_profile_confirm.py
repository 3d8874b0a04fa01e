"""When a profiler's run confirms the clock, with figures that an H200 gave."""

from __future__ import annotations

import pytest

from harness.domain.profile import Bottleneck, CounterProfile, LaunchCounters, ProfileSource, ShapeCounters
from harness.domain.verdict import ShapeTiming, Timing
from harness.domain.vocabulary import Evidence
from harness.evaluation.profile.confirm import confirmed


def timed(*cold_us: float | None, evidence: Evidence = Evidence.BOUNDED) -> Timing:
    shapes = tuple(ShapeTiming(shape=f"shape {number}", weight=1.0, median_us=us or 50.0, p10=1.0, p90=99.0, cv=0.01,
                               cold_us=us) for number, us in enumerate(cold_us))
    return Timing(evidence=evidence, noise=0.005, rounds=5, shapes=shapes)


def seen(*shapes: tuple[float | None, int], source: ProfileSource = ProfileSource.COUNTERS) -> CounterProfile:
    launch = LaunchCounters(function="_kernel", grid=(1, 1, 1), threads=128, bound=Bottleneck.MEMORY, text="")
    return CounterProfile(source, tuple(ShapeCounters(f"shape {number}", Bottleneck.MEMORY, "", us, (launch,) * count)
                                        for number, (us, count) in enumerate(shapes)))


@pytest.mark.parametrize(("cold_us", "profiled_us", "launches"), [
    (69.26, 64.38, 1), (21.12, 17.82, 1), (3333.12, 3318.21, 1), (18.21, 19.30, 2), (34.15, 31.42, 1),
    (6.47, 8.22, 1), (3.30, 4.96, 2), (2.13, 2.94, 1), (9.38, 10.11, 1),
])
def test_honest_times_are_confirmed(cold_us: float, profiled_us: float, launches: int) -> None:
    assert confirmed(timed(cold_us), seen((profiled_us, launches))) == (Evidence.PROFILED, ())


@pytest.mark.parametrize(("cold_us", "profiled_us"), [(40.0, 64.4), (3.0, 64.4), (64.4, 40.0), (1000.0, 1200.0)])
def test_times_that_differ_are_not_confirmed_and_noted(cold_us: float, profiled_us: float) -> None:
    evidence, notes = confirmed(timed(50.0, cold_us), seen((50.0, 1), (profiled_us, 1)))
    assert evidence is Evidence.BOUNDED
    assert [note.code for note in notes] == ["profile_differs"]
    assert notes[0].text == (f"On shape 1 the profiler found {profiled_us:,.2f} us for a call of 1 launch(es), the "
                             f"clock {cold_us:,.2f} us: its run confirms nothing.")


@pytest.mark.parametrize(("cold_us", "profiled_us", "launches"), [(0.01, 2.2, 1), (3.0, 60.0, 30), (1.4, 3.3, 1),
                                                                   (1.9, 0.0, 1)])
def test_neither_many_launches_nor_short_ones_excuse_it(cold_us: float, profiled_us: float, launches: int) -> None:
    evidence, notes = confirmed(timed(cold_us), seen((profiled_us, launches)))
    assert evidence is Evidence.BOUNDED and [note.code for note in notes] == ["profile_differs"]


def test_without_a_cold_time_the_median_is_compared() -> None:
    assert confirmed(timed(None), seen((49.0, 1)))[0] is Evidence.PROFILED
    assert confirmed(timed(None), seen((149.0, 1)))[0] is Evidence.BOUNDED


def test_only_counters_of_every_timed_shape_confirm() -> None:
    assert confirmed(timed(50.0, 60.0), seen((50.0, 1))) == (Evidence.BOUNDED, ())
    assert confirmed(timed(50.0), seen((50.0, 1), source=ProfileSource.CLOCK)) == (Evidence.BOUNDED, ())
    assert confirmed(timed(), seen()) == (Evidence.BOUNDED, ())
    evidence, notes = confirmed(timed(50.0), seen((None, 1)))
    assert evidence is Evidence.BOUNDED and "found no time" in notes[0].text


def test_what_is_only_claimed_stays_so() -> None:
    assert confirmed(timed(50.0, evidence=Evidence.CLAIMED), seen((50.0, 1))) == (Evidence.CLAIMED, ())
