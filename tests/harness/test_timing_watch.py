"""The clock's speed and the sweep of its caches."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from harness.evaluation.timing import watch
from harness.evaluation.timing.pulse import on_cores, pulse
from harness.evaluation.timing.sides import AGAIN, CANDIDATE, Side
from harness.evaluation.timing.sweeper import Sweeper
from harness.hardware.cores import Cores
from harness.hardware.telemetry import Counters

CORES = Cores(timing=(1,), rest=(0,))


def sides() -> list[Side]:
    return [Side(name, SimpleNamespace(switches=0, cpu_s=0.0), 0.0) for name in (CANDIDATE, AGAIN)]  # type: ignore


@pytest.fixture
def machine(monkeypatch):
    """Scripted pulses and counters."""
    script = SimpleNamespace(pulses=[], busy_s=0.0, at=0.0)
    monkeypatch.setattr(watch, "pulse", lambda _: script.pulses.pop(0))
    monkeypatch.setattr(watch.telemetry, "read", lambda _: Counters(script.at, 0.0, script.busy_s))
    return script


@pytest.mark.parametrize(("before", "after", "speed"), [(10.0, 10.0, 1.0), (10.0, 20.0, 0.5), (20.0, 10.0, 0.5),
                                                        (8.0, 8.0, 1.0), (8.0, 10.0, 0.8)])
def test_a_round_is_as_fast_as_its_slower_end(machine, before, after, speed):
    machine.pulses = [11.0, 10.0, 12.0, before, after]
    seen = watch.Watch(CORES)
    both = sides()
    seen.begin(both)
    machine.at = 1.0
    found = seen.end(both, 4)
    assert found.all.speed == pytest.approx(speed)
    assert found.all.disturbed is (speed < 0.9)


@pytest.mark.parametrize(("who", "all_", "outside"),
                         [(CANDIDATE, True, False), (AGAIN, True, True), (None, False, False)])
def test_a_candidate_that_switches_itself_disturbs_only_its_own_round(machine, who, all_, outside):
    machine.pulses = [1.0] * 5
    seen, both = watch.Watch(CORES), sides()
    seen.begin(both)
    for side in both:
        side.worker.switches = 50 if side.name == who else 0
    machine.at = 1.0
    found = seen.end(both, 8)
    assert (found.all.disturbed, found.outside.disturbed) == (all_, outside)


def test_what_the_timed_processes_spend_themselves_is_not_others_work(machine):
    machine.pulses = [1.0] * 5
    seen, both = watch.Watch(CORES), sides()
    seen.begin(both)
    both[0].worker.cpu_s, both[1].worker.cpu_s = 0.3, 0.3
    machine.at, machine.busy_s = 1.0, 0.6
    assert seen.end(both, 8).all.others == 0.0


def test_on_a_single_core_the_judges_own_switches_and_work_do_not_count(machine):
    machine.pulses = [1.0] * 5
    seen, both = watch.Watch(Cores(timing=(0,), rest=(0,))), sides()
    seen.begin(both)
    both[0].worker.switches = both[1].worker.switches = 2 * 8
    machine.at, machine.busy_s = 1.0, 1.0
    assert not seen.end(both, 8).all.disturbed


def test_the_pulse_runs_where_it_is_told_and_goes_back():
    before = os.sched_getaffinity(0)
    last = max(before)
    assert pulse((last,)) > 0
    with on_cores((last,)):
        assert os.sched_getaffinity(0) == {last}
    assert os.sched_getaffinity(0) == before


def test_the_sweeper_reads_memory_that_was_written():
    sweeper = Sweeper(1 << 20)
    assert sweeper.nbytes >= 96 << 20
    assert sweeper.sweep() == pytest.approx(sweeper.nbytes / 4, rel=1e-3)
    assert Sweeper(64 << 20).nbytes >= 3 * (64 << 20)
