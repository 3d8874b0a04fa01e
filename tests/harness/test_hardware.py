"""Detection, cores, roofs and digests: pure parts on given texts, and what must hold on any machine."""

from __future__ import annotations

import json

import pytest

from harness.backends.triton.targets import TARGETS, find_target
from harness.domain.codec import to_document
from harness.domain.errors import InfrastructureError, UsageError
from harness.domain.vocabulary import Backend
from harness.hardware import digests, exclusive, gpu, nvml, reported, roofs, telemetry
from harness.hardware.cores import OVERRIDE, allowed, split
from harness.hardware.cpu import cpu_list, read_cpu
from harness.hardware.detect import environment, hardware_name
from harness.hardware.device_roofs import device_roofs
from harness.hardware.digests import digest, filled, known
from harness.hardware.gpu_facts import BOARDS, Fact
from harness.hardware.matmul import MatmulRoof, matmul_roof
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


def test_six_gpus_are_known_and_every_fact_names_its_source():
    assert {"nvidia-h200", "nvidia-h100", "nvidia-a100", "nvidia-b200", "nvidia-l40s", "amd-mi300x"} == set(BOARDS)
    for board in BOARDS.values():
        assert all(fact.source and fact.value for fact in board.facts), board.name
        assert len({fact.name for fact in board.facts}) == len(board.facts)
        names = " ".join(fact.name for fact in board.facts).lower()
        for topic in ("bandwidth", "registers", "l2", "rates", "architecture"):
            assert topic in names, (board.name, topic)
        assert set(board.numbers) == {"multiprocessors", "memory_bandwidth", "l2_bytes", "shared_bytes_per_block",
                                      "matrix_flops", "warp"}


def test_facts_agree_with_the_targets_that_plans_are_compiled_for():
    for name, target in TARGETS.items():
        numbers = BOARDS[name].numbers
        assert numbers["multiprocessors"] == target.multiprocessors and numbers["warp"] == target.warp
        assert numbers["shared_bytes_per_block"] == target.shared_optin
        assert numbers["l2_bytes"] == pytest.approx(target.l2_bytes, rel=0.05)
        assert numbers["memory_bandwidth"] == pytest.approx(target.memory_clock_khz * target.bus_bits * 250, rel=0.02)


def test_agents_get_facts_by_name_and_numbers():
    facts = digest("nvidia-h200").for_agents()
    assert facts["multiprocessors"] == 132 and facts["memory_bandwidth"] == 4.8e12
    assert facts["Memory bandwidth"] == "4.8 TB/s" and "TMA" in facts["text"]
    assert json.dumps(facts)


TOLD = {"name": "NVIDIA H200", "memory_bytes": 150109880320, "threads_per_block": 1024, "shared_default": 49152,
        "warp": 32, "clock_khz": 1980000, "multiprocessors": 130, "memory_clock_khz": 3201000, "bus_bits": 6016,
        "l2_bytes": 62914560, "threads_per_sm": 2048, "major": 9, "minor": 0, "shared_per_sm": 233472,
        "registers_per_sm": 65536, "shared_optin": 232448, "blocks_per_sm": 32}


def test_what_the_device_reports_goes_before_what_documents_say():
    found = filled(digest("nvidia-h200"), TOLD, (Fact("Measured memory roofs", "copy 4.27 TB/s"),))
    by_name = {fact.name: fact for fact in found.facts}
    assert by_name["Multiprocessors"].value == "130" and by_name["Multiprocessors"].source == reported.DRIVER
    assert by_name["L2 cache"].value == "62,914,560 bytes"
    assert by_name["Memory"].value == "141 GB HBM3e" and "150,109,880,320 bytes" in by_name["Memory"].note
    assert by_name["Memory bandwidth"].value == "4.8 TB/s"  # no driver reports it
    assert by_name["Measured memory roofs"].value == "copy 4.27 TB/s"
    assert found.numbers["multiprocessors"] == 130 and found.numbers["memory_bandwidth"] == 4.8e12
    assert len(by_name) == len(found.facts)


def test_a_device_that_tells_little_keeps_the_documents():
    before = digest("nvidia-h200")
    assert filled(before, {}, ()) == before
    part = filled(before, {"multiprocessors": 131, "major": "nine"}, ())
    assert part.numbers["multiprocessors"] == 131


def test_a_gpu_nobody_wrote_about_is_described_by_itself(monkeypatch):
    own = nvml.Card("NVIDIA RTX 6000", "580.1", "GPU-1")
    monkeypatch.setattr(digests, "card", lambda: own)
    monkeypatch.setattr(reported, "attributes", lambda: TOLD)
    monkeypatch.setattr(reported, "roofs_of", lambda name: ())
    found = digest("nvidia-rtx-6000")
    assert found.title == "NVIDIA RTX 6000" and found.numbers["multiprocessors"] == 130
    assert "nvidia-rtx-6000" in known() and found.rules


def test_measured_roofs_are_told(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNELOPT_VAR", str(tmp_path))
    assert reported.roofs_of("nvidia-h200") == ()
    class_ = environment(Backend.TRITON, "nvidia-h200").class_

    class Device:
        def roofs(self):
            return {"copy": 4.27e12, "read": 4.36e12}

    device_roofs(Device(), class_)
    matmul_roof(class_, measure=lambda: MatmulRoof(8.246e14, "cuBLAS 13.1.0"))
    memory, product = reported.roofs_of("nvidia-h200")
    assert "4.27 TB/s" in memory.value and (product.value, product.note) == ("825 TFLOP/s", "cuBLAS 13.1.0")


def test_a_device_without_plans_cannot_be_a_goal():
    for name in ("amd-mi300x", "nvidia-b200"):
        with pytest.raises(UsageError, match="plans can be compiled for"):
            find_target(name)


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


def test_two_cards_of_one_host_are_measured_side_by_side(monkeypatch):
    cards = tuple(nvml.Card("NVIDIA H200", "580.95.05", f"GPU-{name}") for name in ("aa", "bb"))
    monkeypatch.setattr(gpu, "_launches", lambda: True)
    monkeypatch.setattr(nvml, "cards", lambda: cards)
    paths = []
    for visible in ("0", "1", "GPU-bb"):
        monkeypatch.setenv(gpu.VISIBLE, visible)
        paths.append(exclusive.lock_path("nvidia-h200"))
    assert paths[0] != paths[1] == paths[2]
    assert exclusive.lock_path("nvidia-h100") == exclusive.lock_path("nvidia-h100")
    assert "GPU" not in exclusive.lock_path("nvidia-h100").name


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
