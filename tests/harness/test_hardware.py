"""Detection, cores, roofs and digests: pure parts on given texts, and what must hold on any machine."""

from __future__ import annotations

import json

import pytest

from harness.domain.codec import to_document
from harness.domain.errors import InfrastructureError, UsageError
from harness.domain.vocabulary import Backend
from harness.hardware import exclusive, roofs, telemetry
from harness.hardware.cores import OVERRIDE, allowed, split
from harness.hardware.cpu import cpu_list, read_cpu
from harness.hardware.detect import environment, hardware_name
from harness.hardware.digests import digest, known
from harness.hardware.roofs import Level, Roofs

INTEL = "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel name\t: Xeon\nflags\t\t: sse4_2 avx avx2\n\nprocessor: 1\n"
ARM = "processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n"


@pytest.mark.parametrize(("text", "vendor", "family", "bits"), [(INTEL, "intel", "6", 256), (ARM, "arm", "0xd40", 128)])
def test_processors_are_read_from_the_kernels_text(text, vendor, family, bits):
    cpu = read_cpu(text)
    assert (cpu.vendor, cpu.family, cpu.simd_bits) == (vendor, family, bits)


def test_unknown_processors_still_get_a_name():
    cpu = read_cpu("something: else\n")
    assert (cpu.vendor, cpu.family, cpu.simd) == ("unknown", "0", "scalar")


@pytest.mark.parametrize(("text", "cores"), [("0", {0}), ("0-3,8", {0, 1, 2, 3, 8}), ("2,4", {2, 4})])
def test_cpu_lists(text, cores):
    assert cpu_list(text) == cores


@pytest.mark.parametrize(("cores", "timing", "rest"), [((3,), (3,), (3,)), ((0, 1), (1,), (0,)),
                                                      ((0, 2, 4, 6), (2, 4, 6), (0,))])
def test_the_clock_gets_all_but_the_first_core(cores, timing, rest):
    found = split(cores)
    assert (found.timing, found.rest, found.threads) == (timing, rest, len(timing))


def test_cores_can_be_named_by_the_environment(monkeypatch):
    monkeypatch.setenv(OVERRIDE, "4-6")
    assert allowed() == (4, 5, 6)
    assert hardware_name().endswith("-2t")
    monkeypatch.setenv(OVERRIDE, "many")
    with pytest.raises(UsageError, match=OVERRIDE):
        allowed()


def test_environment_class_names_device_compiler_and_evaluator():
    numba, triton = environment(Backend.NUMBA), environment(Backend.TRITON)
    assert numba.class_.startswith(hardware_name() + "/linux-")
    assert "/numba-" in numba.class_ and "/eval-" in numba.class_
    assert triton.class_.startswith("interpreter/") and "triton" in triton.packages


def test_every_known_digest_has_facts_rules_and_a_text():
    for name in known():
        found = digest(name)
        assert found.facts and found.rules and found.name in found.text
        assert to_document(found)["name"] == name


def test_unknown_hardware_lists_the_known():
    with pytest.raises(UsageError, match="nvidia-h200"):
        digest("nvidia-h2000")


def test_steal_and_switches_make_a_disturbance():
    text = "cpu0 0 0 0 0 0 0 0 {} 0 0\ncpu1 0 0 0 0 0 0 0 500 0 0\n"
    before, after = telemetry.Counters(0.0, 1.0), telemetry.Counters(2.0, 1.5)
    assert telemetry.read([0], text.format(250)).stolen_s == 2.5
    assert telemetry.between(before, after, 1, switches=0, requests=10).steal_share == pytest.approx(0.25)
    assert telemetry.between(before, before, 1, switches=9, requests=10).disturbed
    assert not telemetry.between(before, before, 1, switches=1, requests=10).disturbed


@pytest.mark.parametrize(("busy_s", "own_s", "disturbed"), [
    (1.0, 1.0, False), (1.5, 1.0, True), (1.2, 1.0, False), (0.5, 1.0, False), (1.5, None, False),
])
def test_others_on_the_clocks_cores_make_a_disturbance(busy_s, own_s, disturbed):
    before, after = telemetry.Counters(0.0, 0.0, 5.0), telemetry.Counters(1.0, 0.0, 5.0 + busy_s)
    assert telemetry.between(before, after, 1, switches=0, requests=10, own_s=own_s).disturbed is disturbed


@pytest.mark.parametrize(("speed", "disturbed"), [(1.0, False), (0.92, False), (0.85, True)])
def test_a_slower_clock_makes_a_disturbance(speed, disturbed):
    now = telemetry.Counters(0.0, 0.0)
    assert telemetry.between(now, now, 1, switches=0, requests=1, speed=speed).disturbed is disturbed


def test_busy_time_leaves_out_idling_waiting_and_stolen_time():
    assert telemetry.read([1], "cpu1 1 2 4 800 800 8 16 500 1 1").busy_s == pytest.approx(0.31)


ROOFS = Roofs((Level(1000, 9.0, 8.0), Level(10_000, 4.0, 5.0), Level(100_000, 2.0, 1.0)), flops=10.0, threads=1)


@pytest.mark.parametrize(("footprint", "rate"), [(10, 9.0), (1000, 9.0), (9_999, 9.0), (10_000, 5.0), (10**9, 2.0)])
def test_the_roof_of_a_footprint_is_never_too_low(footprint, rate):
    assert ROOFS.bandwidth(footprint) == rate


def test_the_floor_is_the_slower_of_memory_and_arithmetic():
    assert ROOFS.floor_s(90, 10, 1000) == pytest.approx(10.0)
    assert ROOFS.floor_s(90, 200, 1000) == pytest.approx(20.0)


def test_roofs_are_measured_once_and_kept(monkeypatch, tmp_path):
    monkeypatch.setenv(roofs.VAR, str(tmp_path))
    calls = []
    monkeypatch.setattr(roofs, "measure", lambda cores: calls.append(cores) or ROOFS)
    assert roofs.roofs() == roofs.roofs() == ROOFS
    assert len(calls) == 1
    (kept,) = (tmp_path / "roofs").iterdir()
    kept.write_text(json.dumps({"levels": "damaged"}))
    assert roofs.roofs() == ROOFS
    assert len(calls) == 2


def test_one_measurement_at_a_time(monkeypatch, tmp_path):
    monkeypatch.setattr(exclusive, "lock_path", lambda name: tmp_path / name)
    waited = []
    second = exclusive.device("clock", 0.1, lambda: waited.append(1))
    with exclusive.device("clock", 1.0), pytest.raises(InfrastructureError, match="clock"), second:
        pass
    assert waited == [1]
    with exclusive.device("clock", 0.0):
        pass


def test_measuring_roofs_again_only_raises_them(monkeypatch, tmp_path):
    monkeypatch.setenv(roofs.VAR, str(tmp_path))
    rates = iter([Roofs((Level(100, 10.0, 5.0),), 7.0, 1), Roofs((Level(100, 8.0, 6.0),), 9.0, 1)])
    monkeypatch.setattr(roofs, "measure", lambda _: next(rates))
    first = roofs.roofs()
    assert roofs.roofs() == first
    again = roofs.roofs(afresh=True)
    assert again == roofs.roofs() == Roofs((Level(100, 10.0, 6.0),), 9.0, 1)


def test_roofs_of_other_levels_are_not_mixed():
    old, new = Roofs((Level(100, 10.0, 5.0),), 7.0, 1), Roofs((Level(200, 8.0, 6.0),), 5.0, 1)
    assert roofs.best(old, new) == roofs.best(None, new) == new
