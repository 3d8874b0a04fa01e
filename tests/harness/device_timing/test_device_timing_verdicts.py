"""The device clock on a modelled device: what it concludes, and that forged figures and outputs are caught."""

from __future__ import annotations

import math

import pytest

from harness.domain.errors import InfrastructureError
from harness.domain.goal import Limits
from harness.domain.vocabulary import Comparison, Evidence, Outcome
from harness.evaluation.ports import CandidateFault
from harness.evaluation.timing.device.shape import CACHES, LEAST_SLOTS
from harness.hardware.nvml import Reading
from harness.operators.base import ShapePoint
from tests.harness.device_timing.device_model import CALM, L2, Model, timed

POINTS = (ShapePoint("48x257", {"rows": 48, "cols": 257}, 0.6), ShapePoint("7x4099", {"rows": 7, "cols": 4099}, 0.4))
PAIR = {"candidate": "mine", "baseline": "other"}


@pytest.fixture(autouse=True)
def quiet_host(tmp_path, monkeypatch):
    """Roofs and locks of this test alone."""
    monkeypatch.setenv("KERNELOPT_VAR", str(tmp_path / "var"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def request_label(found, request):
    """The shape that a round was about."""
    sizes = math.prod(request.arrays[0].shape)
    return next(label for label, shape in found.shapes.items() if math.prod(shape.lending.lent[0].shape) == sizes)


def model(mine, other, **more):
    return Model({"mine": mine, "other": other, "third": other * 1.5}, **more)


@pytest.mark.parametrize(("mine", "expected"), [
    (100.0, Comparison.CANNOT_TELL), (101.0, Comparison.CANNOT_TELL), (88.0, Comparison.FASTER),
    (114.0, Comparison.SLOWER), (8.8, Comparison.FASTER),
])
@pytest.mark.parametrize("seed", [1, 2])
def test_known_effects_are_called_right(mine, expected, seed):
    other = 10.0 if mine < 20 else 100.0
    found = timed(PAIR, model(mine, other), points=POINTS, seed=seed)
    assert found.refused is None
    run = found.run
    assert run.comparison is expected
    assert run.timing.overall["baseline"].ratio == pytest.approx(other / mine, rel=0.02)
    assert run.timing.evidence is Evidence.BOUNDED and not run.notes
    assert run.timing.rounds >= 5 and run.timing.pairs >= 8
    assert 0 < run.timing.noise < 0.02
    assert run.clocks["verified_samples"] >= 4


def test_samples_hold_every_role_hot_first_calls_and_the_control():
    found = timed({"candidate": "mine", "incumbent": "other", "baseline": "third"}, model(90.0, 100.0), points=POINTS)
    run = found.run
    for shape in run.samples.shapes:
        assert set(shape.versus) == {"incumbent", "baseline"} and len(shape.aa) == 5
        assert len(shape.versus["incumbent"]) == 5 and len(shape.versus["incumbent"][0].candidate) == 20
        assert set(shape.hot) == {"candidate", "incumbent", "baseline"} and len(shape.hot["candidate"]) == 10
        assert shape.first_calls["candidate"][0] >= 0.5e6 and len(shape.mhz) == 5 and shape.disturbed == ("",) * 5
    assert run.timing.shapes[0].hot_us < run.timing.shapes[0].median_us
    assert run.score > 1 and run.timing.overall["baseline"].ratio > run.timing.overall["incumbent"].ratio


def test_the_native_runs_figure_stands_beside_the_devices_own():
    found = timed(PAIR, model(90.0, 100.0), points=POINTS, native={"shape": "7x4099", "host_us": 131.0})
    assert [shape.host_us for shape in found.run.timing.shapes] == [None, 131.0]


def test_a_kernel_alone_is_timed_against_a_copy_of_itself():
    found = timed({"candidate": "mine"}, model(90.0, 100.0), points=POINTS)
    assert found.run.comparison is Comparison.NONE and found.run.timing.noise > 0
    assert found.run.samples.shapes[0].versus == {}


def test_requests_flush_renew_and_leave_the_caches():
    found = timed(PAIR, model(90.0, 100.0), points=POINTS)
    starts: dict[int, list[int]] = {}
    orders = set()
    for request in found.device.requests:
        slot_bytes = sum(4 if item.dtype == "float32" else 2 for item in request.arrays)
        slot_bytes = slot_bytes // len(request.arrays) * sum(
            item.shape[0] * item.shape[1] for item in request.arrays)
        assert request.slots >= LEAST_SLOTS
        assert request.slots == 256 or request.slots * slot_bytes >= CACHES * L2
        for sweep in request.sweeps:
            assert sorted(sweep.order) == sorted(request.sides) and len(set(sweep.slots)) == len(sweep.slots)
            assert max(sweep.slots) < request.slots and len(sweep.starts) == len(sweep.slots)
            starts.setdefault(request.arrays[0].fd, []).extend(sweep.starts)
            orders.add(sweep.order)
        assert sum(not sweep.flush for sweep in request.sweeps) == 2
    assert all(len(set(drawn)) == len(drawn) for drawn in starts.values())
    assert len(orders) > 4 and len({request.spacer for request in found.device.requests}) > 5


def test_short_calls_are_timed_in_batches_after_the_screening():
    found = timed(PAIR, model(5.0, 6.0), points=POINTS)
    sizes = [{len(sweep.slots) for sweep in request.sweeps if sweep.flush} for request in found.device.requests]
    assert sizes[:2] == [{1}, {1}] and all(size == {16} for size in sizes[2:])
    for request in found.device.requests:
        held = found.shapes[request_label(found, request)].ring_bytes
        hot = [len(sweep.slots) for sweep in request.sweeps if not sweep.flush]
        assert all(count == 1 or count * held <= L2 for count in hot)  # else they would not be hot
    assert {len(sweep.slots) for sweep in timed(PAIR, model(30.0, 26.0), points=POINTS).device.requests[-1].sweeps
            if sweep.flush} == {4}


def test_long_and_clearly_slower_kernels_get_fewer_pairs():
    assert timed(PAIR, model(5000.0, 4500.0), points=POINTS).run.timing.pairs == 8
    assert timed(PAIR, model(200.0, 100.0), points=POINTS).run.timing.pairs == 8


def test_a_promising_cannot_tell_is_measured_twice_as_long():
    swing = {"mine": (1.0, 0.95, 1.0, 0.95, 1.0, 0.95)}
    found = timed(PAIR, model(100.0, 100.0, swing=swing, round_noise=0.001), points=POINTS)
    assert found.run.timing.longer and found.run.timing.rounds == 10


def test_wrong_outputs_of_timed_calls_are_a_hack():
    found = timed(PAIR, model(50.0, 100.0, wrong="mine"), points=POINTS)
    assert found.refused.outcome is Outcome.REWARD_HACK
    assert found.refused.reasons[0].code == "timed_output_wrong" and found.refused.reasons[1].got is not None


def test_late_writes_are_a_hack_and_another_sides_are_nobodys():
    found = timed(PAIR, model(50.0, 100.0, late="mine"), points=POINTS)
    assert (found.refused.outcome, found.refused.reasons[0].code) == (Outcome.REWARD_HACK, "late_write")
    with pytest.raises(InfrastructureError, match="baseline"):
        timed(PAIR, model(50.0, 100.0, late="other"), points=POINTS)


def rates_for(found_us, share):
    """Memory rates at which the larger shape's least time is ``found_us / share``: its outputs fit the cache."""
    read = 48 * 257 * 2
    return {"copy": 1.0, "read": read / (found_us / share * 1e-6)}


@pytest.mark.parametrize(("share", "refused", "suspicious"), [(0.85, True, False), (0.925, False, True),
                                                              (1.1, False, False)])
def test_times_below_the_roof(share, refused, suspicious):
    found = timed(PAIR, model(50.0, 60.0, rates=rates_for(50.0, share)), points=POINTS[:1])
    if refused:
        assert (found.refused.outcome, found.refused.reasons[0].code) == (Outcome.REWARD_HACK, "below_floor")
        assert found.device.asked["roofs"] > 3  # measured again before anybody is refused
        return
    assert found.refused is None and bool(found.run.suspicious) is suspicious
    assert (found.run.timing.evidence is Evidence.CLAIMED) is suspicious


def test_a_roof_measured_on_a_bad_day_refuses_nobody():
    slow = rates_for(50.0, 0.5)
    first = timed(PAIR, model(500.0, 600.0, rates=slow), points=POINTS[:1])
    assert first.refused is None
    better = {**slow, "read": slow["read"] * 3}
    second = timed(PAIR, model(50.0, 60.0, rates=better), points=POINTS[:1])
    assert second.refused is None and not second.run.suspicious
    assert second.run.clocks["roofs"]["read_gbps"] == pytest.approx(better["read"] / 1e9, abs=0.1)
    third = timed(PAIR, model(50.0, 60.0, rates=slow), points=POINTS[:1])  # what is kept is never lowered
    assert third.refused is None and third.device.asked["roofs"] == 0


def test_events_that_the_judges_clock_cannot_account_for_are_only_claimed():
    found = timed(PAIR, model(50.0, 100.0, judged_share=1.5), points=POINTS)
    assert found.run.timing.evidence is Evidence.CLAIMED
    note = next(note for note in found.run.notes if note.code == "clock_disagrees")
    assert "75.0 us" in note.text or "7" in note.text
    assert found.run.clocks["slopes"]["48x257"]["candidate"]["judge_us"] == pytest.approx(75.0, rel=0.05)


def test_throttled_rounds_are_measured_again_and_noted_where_that_does_not_help():
    hot = Reading(1410, 3201, 700.0, 88, 0x40, ())
    looks = [CALM] * 5 + [hot] * 3 + [CALM]  # hot after a round, and for two more looks
    found = timed(PAIR, model(88.0, 100.0), points=POINTS, looks=looks)
    assert not found.run.notes and found.run.clocks["gpu"]["rounds_repeated"] == 1
    assert found.run.clocks["gpu"]["celsius"] == [40, 88] and found.run.clocks["gpu"]["event_reasons"] == "0x40"
    assert found.run.timing.rounds == 5
    found = timed(PAIR, model(88.0, 100.0), points=POINTS, looks=[hot])
    note = next(note for note in found.run.notes if note.code == "noisy_machine")
    assert "hardware thermal slowdown" in note.text and found.run.clocks["gpu"]["rounds_repeated"] == 3
    assert any(found.run.samples.shapes[0].disturbed)


def test_sides_that_ran_at_different_clocks_are_measured_again():
    found = timed(PAIR, model(88.0, 100.0, mhz_of={"mine": 1900.0}), points=POINTS)
    note = next(note for note in found.run.notes if note.code == "noisy_machine")
    assert "MHz" in note.text and found.run.clocks["gpu"]["rounds_repeated"] == 3


def test_power_cap_and_company_are_noted_and_repeat_nothing():
    looks = [Reading(1755, 3201, 700.0, 60, 0x4, (1, 99_999_998, 99_999_999))]
    found = timed(PAIR, model(88.0, 100.0), points=POINTS, looks=looks)
    assert {note.code for note in found.run.notes} == {"power_capped", "device_shared"}
    assert found.run.clocks["gpu"]["rounds_repeated"] == 0 and found.run.comparison is Comparison.FASTER


def test_a_host_without_telemetry_still_times():
    found = timed(PAIR, model(88.0, 100.0), points=POINTS, looks=[None])
    assert found.run.comparison is Comparison.FASTER and found.run.clocks["gpu"]["sm_mhz"] is None


@pytest.mark.parametrize(("code", "outcome"), [("illegal_address", Outcome.OUT_OF_BOUNDS),
                                               ("timeout", Outcome.TIMEOUT)])
def test_a_candidate_that_fails_on_the_device_is_charged(code, outcome):
    with pytest.raises(CandidateFault) as caught:
        timed(PAIR, model(50.0, 100.0, faulty={"mine": code}), points=POINTS)
    assert caught.value.fault.outcome is outcome
    assert caught.value.fault.case in {point.label for point in POINTS}


@pytest.mark.parametrize(("faults", "words"), [(1 << 30, "it failed again"), (1, "did not fail")])
def test_a_kernel_that_failed_is_called_once_more_by_itself_and_charged_all_the_same(faults, words):
    with pytest.raises(CandidateFault) as caught:
        timed(PAIR, model(50.0, 100.0, faulty={"mine": "launch_failed"}, faults=faults), points=POINTS)
    fault = caught.value.fault
    assert (fault.outcome, fault.code) == (Outcome.RUNTIME_ERROR, "crash")
    assert f"It was being timed on {fault.case}." in fault.text and words in fault.text


def test_an_opponent_that_fails_on_the_device_is_not_the_candidates_affair():
    with pytest.raises(InfrastructureError, match="baseline"):
        timed(PAIR, model(50.0, 100.0, faulty={"other": "illegal_address"}), points=POINTS)
    with pytest.raises(InfrastructureError, match="baseline"):
        timed(PAIR, model(50.0, 100.0, refused={"other": "forged"}), points=POINTS)
    with pytest.raises(CandidateFault):
        timed(PAIR, model(50.0, 100.0, refused={"mine": "forged"}), points=POINTS)


@pytest.mark.parametrize("what", [{"broken_inputs": True}, {"senseless": True}, {"rates": {"copy": 0.0}}])
def test_what_the_launcher_gets_wrong_is_never_charged(what):
    with pytest.raises(InfrastructureError):
        timed(PAIR, model(50.0, 100.0, **what), points=POINTS)


def test_limits_on_spread_and_throughput():
    found = timed(PAIR, Model({"mine": 50.0, "other": 100.0}, sample_noise=0.002), points=POINTS,
                  limits=Limits(throughput_floor=1e6))
    assert (found.refused.outcome, found.refused.reasons[0].code) == (Outcome.OVER_LIMIT, "throughput_floor")
