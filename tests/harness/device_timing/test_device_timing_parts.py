"""The pure parts of the device clock: rings and batches, slopes and evidence, what disturbs a round, roofs."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.backends.triton.launcher.requests import Sweep
from harness.domain.errors import InfrastructureError
from harness.domain.vocabulary import Evidence
from harness.evaluation.timing.device.evidence import Slope, assess, lower, slope_us, too_fast
from harness.evaluation.timing.device.shape import BATCH_US, CACHES, LEAST_SLOTS, MOST_BATCH, MOST_SLOTS, Shape
from harness.evaluation.timing.device.stages import pairs_for
from harness.evaluation.timing.device.watch import Log, disturbance, side_clocks
from harness.hardware.device_roofs import DeviceRoofs, device_roofs, matrix_peak
from harness.hardware.nvml import Reading
from harness.operators.base import ShapePoint
from harness.operators.registry import get


@pytest.fixture(scope="module")
def shape():
    made = Shape(get("rms_norm"), ShapePoint("8x64", {"rows": 8, "cols": 64}, 1.0), dtype="bfloat16",
                 regimes=("normal",), seed=1, source=random.Random(1), stage="test")
    yield made
    made.close()


@settings(max_examples=80, deadline=None)
@given(l2=st.integers(0, 1 << 27), memory=st.integers(1 << 14, 1 << 38), us=st.lists(st.floats(0.5, 1e5), min_size=1))
def test_rings_leave_the_cache_or_stop_at_their_bound_and_fit_the_device(shape, l2, memory, us):
    shape.settle(us)
    slots = shape.slots(l2, memory)
    assert 1 <= slots <= MOST_SLOTS
    fits = slots * shape.ring_bytes <= memory // 4
    assert fits or slots == 1
    bounded = slots in (MOST_SLOTS, max(1, memory // 4 // shape.ring_bytes))
    assert bounded or (slots >= LEAST_SLOTS and slots * shape.ring_bytes >= CACHES * l2 and slots >= shape.batch)
    assert 1 <= shape.batch <= MOST_BATCH and (shape.batch == 1) is (min(us) >= BATCH_US)
    assert shape.batch == MOST_BATCH or BATCH_US <= shape.batch * min(us) < max(2 * BATCH_US, min(us) * 1.01)
    assert min(us) <= shape.expected_us <= max(us)


def test_a_slot_holds_what_changes_and_the_weight_does_not(shape):
    assert shape.ring_bytes == 2 * 8 * 64 * 2 and shape.written_bytes == 8 * 64 * 2
    assert [item.name for item in shape.renewed] == ["x"]


@pytest.mark.parametrize(("us", "ratio", "pairs"), [(50.0, None, 20), (None, 1.0, 20), (2000.0, 1.0, 10),
                                                    (1e6, 1.0, 8), (50.0, 0.5, 8)])
def test_pairs_are_fixed_by_what_the_screening_saw(us, ratio, pairs):
    assert pairs_for(us, ratio) == pairs


@given(st.floats(1e-6, 1.0), st.floats(1e-7, 1e-2), st.integers(1, 1000))
def test_a_slope_is_free_of_what_a_request_costs(cost, seconds, few):
    points = [(count, cost + count * seconds) for count in (few, 4 * few)]
    assert slope_us(points) == pytest.approx(seconds * 1e6, rel=1e-6, abs=1e-6 * cost / few * 1e6)


def test_a_slope_needs_two_counts_and_the_less_disturbed_one_counts():
    with pytest.raises(ValueError, match="more calls"):
        slope_us([(4, 1.0), (4, 2.0)])
    assert lower(Slope(5.0, 5.0), Slope(4.0, 4.0)).judged_us == 4.0
    assert lower(Slope(3.0, 3.0), Slope(4.0, 4.0)).judged_us == 3.0
    assert not too_fast(8.1, Slope(10.0, 8.0)) and too_fast(7.9, Slope(10.0, 8.0))


@pytest.mark.parametrize(("mine", "slope", "least_us", "reasons"), [
    (100.0, 100.0, 50.0, 0), (81.0, 100.0, 50.0, 0), (79.0, 100.0, 50.0, 1), (100.0, None, 50.0, 1),
    (100.0, 100.0, 106.0, 1), (79.0, 100.0, 106.0, 2), (100.0, 100.0, 105.0, 0),
])
def test_evidence_is_bounded_only_where_slope_and_roof_agree(mine, slope, least_us, reasons):
    slopes = {"s": {"baseline": Slope(200.0, 200.0)} | ({} if slope is None else {"candidate": Slope(slope, slope)})}
    evidence, found = assess({"s": {"candidate": mine, "baseline": 210.0}}, slopes, {"s": least_us * 1e-6})
    assert len(found) == reasons and (evidence is Evidence.BOUNDED) is (reasons == 0)


def sweeps(*first):
    return [Sweep(slots=(0,), starts=(0,), order=(side, "z"), poison=1) for side in first]


def reading(reasons=0, processes=(), celsius=40):
    return Reading(1980, 3201, 300.0, celsius, reasons, processes)


@pytest.mark.parametrize(("mhz", "disturbed"), [
    ((1980, 1981, 1979, 1930, 1931, 1929), True),  # 2.5 % and sure
    ((1980, 1981, 1979, 1950, 1951, 1949), False),  # 1.5 %
    ((1800, 2100, 2040, 1700, 2150, 1900), False),  # 3 %, read coarsely
    ((1980, None, 1979, 1500, 1501, None), False),  # too few looks
])
def test_clocks_of_two_sides_disturb_where_they_surely_differ(mhz, disturbed):
    found = disturbance(None, None, sweeps("a", "a", "a", "b", "b", "b"), mhz)
    assert bool(found) is disturbed
    assert not disturbed or ("a kernel" in found and "b kernel" in found)


def test_the_clock_of_a_side_is_that_of_the_sweeps_it_opened():
    found = side_clocks(sweeps("a", "b", "a", "a", "b"), (10.0, 99.0, 20.0, 30.0, None))
    assert set(found) == {"a"} and found["a"].mean == 20.0


@pytest.mark.parametrize(("bits", "disturbed"), [(0x0, False), (0x1, False), (0x2, False), (0x4, False), (0x8, True),
                                                 (0x10, False), (0x20, True), (0x40, True), (0x80, True)])
def test_slowdowns_disturb_and_a_power_cap_does_not(bits, disturbed):
    for pair in ((reading(bits), reading()), (reading(), reading(bits))):
        assert bool(disturbance(*pair, [], [])) is disturbed


def test_readings_are_summed_up_for_the_verdict():
    log = Log(own=1)
    log.add(reading(), reading(0x4, celsius=61))
    log.add(None, None)
    document = log.document()
    assert document["celsius"] == [40, 61] and document["event_reasons"] == "0x4" and document["rounds"] == 2
    assert (log.capped, log.company, document["other_processes"]) == (1, 0, 0)
    assert Log(own=1).document()["event_reasons"] is None
    assert json.dumps(document)


class Rates:
    def __init__(self, *rates):
        self.rates, self.asked = list(rates), 0

    def roofs(self):
        self.asked += 1
        return self.rates.pop(0) if len(self.rates) > 1 else self.rates[0]


def test_roofs_are_measured_once_the_best_counts_and_they_never_fall(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNELOPT_VAR", str(tmp_path))
    device = Rates({"copy": 4.1e12, "read": 4.0e12}, {"copy": 4.2e12, "read": 3.9e12}, {"copy": 4.0e12, "read": 4.3e12})
    assert device_roofs(device, "nvidia-h200/driver-580") == DeviceRoofs(4.2e12, 4.3e12)
    assert device_roofs(Rates({}), "nvidia-h200/driver-580") == DeviceRoofs(4.2e12, 4.3e12)
    slow = Rates({"copy": 1e12, "read": 5e12})
    assert device_roofs(slow, "nvidia-h200/driver-580", afresh=True) == DeviceRoofs(4.2e12, 5e12)
    assert device_roofs(Rates({"copy": 3e12, "read": 3e12}), "nvidia-h200/driver-590").bandwidth == 3e12


@pytest.mark.parametrize("rates", [{}, {"copy": 1e12}, {"copy": 0.0, "read": 1e12}, {"copy": -1.0, "read": 1.0},
                                   {"copy": float("nan"), "read": 1e12}, {"copy": "fast", "read": 1e12}])
def test_senseless_rates_are_the_launchers_fault(rates, tmp_path, monkeypatch):
    monkeypatch.setenv("KERNELOPT_VAR", str(tmp_path))
    with pytest.raises(InfrastructureError):
        device_roofs(Rates(rates), "nvidia-h200/driver-580")


def test_a_damaged_file_of_roofs_is_measured_again(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNELOPT_VAR", str(tmp_path))
    (tmp_path / "roofs").mkdir()
    for text in ("{", "[]", '{"copy": 0, "read": 1}'):
        (tmp_path / "roofs" / "x_y.json").write_text(text)
        device = Rates({"copy": 2e12, "read": 1e12})
        assert device_roofs(device, "x/y").bandwidth == 2e12 and device.asked == 3


def test_the_floor_is_the_slower_of_memory_and_arithmetic():
    roofs = DeviceRoofs(copy=4e12, read=4e12)
    assert roofs.floor_s(4_000_000, 10, matrix_peak("nvidia-h200", "bfloat16")) == pytest.approx(1e-6)
    assert roofs.floor_s(4, 989_000_000, matrix_peak("nvidia-h200", "bfloat16")) == pytest.approx(1e-6)
    assert roofs.floor_s(4, 989_000_000, matrix_peak("nvidia-unknown", "bfloat16")) == pytest.approx(1e-12)
