"""From the profiler's report to figures and sentences."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.domain.plan import LaunchResources
from harness.domain.profile import Bottleneck, LaunchCounters, Stall
from harness.evaluation.profile import metrics
from harness.evaluation.profile.counters import launch_counters, shape_counters
from harness.evaluation.profile.table import read_table
from harness.evaluation.profile.tool import METRICS, NoCounters, understood
from harness.evaluation.profile.words import bottleneck, sentences
from tests.harness.profile.reports import BUSY_MEMORY, report

RESOURCES = LaunchResources("_kernel", (8192, 1, 1), 8, 1, 64, 0, 0, 64, 0.5, None, "registers")
TOOL = "Nsight Compute 2025.3.1.0"


def counters(**changes: str) -> LaunchCounters:
    values = BUSY_MEMORY | {metrics.SHARES.get(name, name): value for name, value in changes.items()}
    (row,) = read_table(report(("_kernel", values)))
    return launch_counters(row, RESOURCES)


def test_a_launch_that_memory_binds() -> None:
    found = counters()
    assert (found.bound, found.us, found.threads, found.grid) == (Bottleneck.MEMORY, 68.416, 256, (8192, 1, 1))
    assert found.dram_gbps == pytest.approx(3920.4, rel=1e-3) and found.dram_share == pytest.approx(0.8195)
    assert (found.limiter, found.registers, found.shared_bytes, found.spill_bytes) == ("registers", 64, 64, 0)
    assert (found.occupancy, found.waves, found.bank_conflicts) == (0.5, 15.52, 0.0)
    assert [stall.reason for stall in found.stalls] == ["long_scoreboard", "barrier"]
    assert found.stalls[0].share == pytest.approx(0.71)
    assert found.text == (
        "Bound by memory: 82% of the peak of device memory (3,920 GB/s). 48% of the warp slots were active; registers "
        "allow 50%. Warps wait longest for loads from device memory or the caches (71% of the time between two "
        "instructions).")


@pytest.mark.parametrize(("changes", "bound", "words"), [
    ({"dram_share": "20", "sm_share": "88", "tensor_share": "80"}, Bottleneck.COMPUTE,
     "Bound by arithmetic: multiprocessors at 88% of their peak, matrix units at 80%."),
    ({"dram_share": "20", "l2_share": "75"}, Bottleneck.CACHE, "Bound by the L2 cache: 75% of its peak"),
    ({"dram_share": "12", "sm_share": "9", "l2_share": "14"}, Bottleneck.LATENCY,
     "Bound by latency: no unit is busy (device memory 12%, multiprocessors 9%, L2 cache 14%)."),
    ({"dram_share": "70", "sm_share": "95"}, Bottleneck.COMPUTE, "Bound by instructions: multiprocessors at 95%"),
    ({"occupancy_achieved": "20"}, Bottleneck.MEMORY, "far below: blocks are few or uneven"),
    ({metrics.WAVES: "0.24"}, Bottleneck.MEMORY, "The grid fills 24% of what the device holds at once."),
    ({metrics.WAVES: "2.1"}, Bottleneck.MEMORY, "The last of 2.1 waves is mostly empty."),
    ({metrics.CONFLICTS: "262,144"}, Bottleneck.MEMORY, "50% of the passes over shared memory are bank conflicts."),
])
def test_words_say_what_the_figures_do(changes: dict[str, str], bound: Bottleneck, words: str) -> None:
    found = counters(**changes)
    assert found.bound is bound
    assert words in found.text


def test_what_was_not_measured_is_none_and_not_zero() -> None:
    (row,) = read_table(report(("_kernel", {metrics.TIME: "68,416", metrics.SHARES["dram_share"]: "n/a"})))
    found = launch_counters(row, RESOURCES)
    assert (found.dram_share, found.dram_gbps, found.l2_hit, found.bank_conflicts, found.stalls) == (
        None, None, None, None, ())
    assert (found.registers, found.limiter, found.bound) == (64, "registers", Bottleneck.UNKNOWN)  # the compiler's


def test_the_longest_launch_speaks_for_a_call() -> None:
    rows = read_table(report(("_split", BUSY_MEMORY), ("_combine", BUSY_MEMORY | {metrics.TIME: "4,000"})))
    split, combine = (launch_counters(row, RESOURCES) for row in rows)
    whole = shape_counters("B1", (split, combine))
    assert whole.us == pytest.approx(72.416) and whole.bound is Bottleneck.MEMORY
    assert whole.text.startswith("_kernel takes 94% of 2 launches. Bound by memory")


@pytest.mark.parametrize("unit", [("ns", 1e-3), ("nsecond", 1e-3), ("usecond", 1.0), ("ms", 1e3), ("second", 1e6)])
def test_times_are_read_in_their_unit(unit: tuple[str, float]) -> None:
    text = report(("_kernel", {metrics.TIME: "2.5"})).replace('"ns"', f'"{unit[0]}"')
    assert read_table(text)[0].values[metrics.TIME] == pytest.approx(2.5 * unit[1])


@pytest.mark.parametrize("text", ["", "==ERROR== nothing", '"ID","Name"\n"1","x"\n', '"Kernel Name"\n'])
def test_no_table_is_no_rows(text: str) -> None:
    assert read_table(text) == ()


@given(st.text(max_size=300))
def test_any_text_is_read_without_an_error(text: str) -> None:
    read_table(report(("_kernel", BUSY_MEMORY), head=text + "\n"))
    read_table(text)


@given(*[st.none() | st.floats(0, 1.2)] * 3)
def test_what_binds_was_busy(dram: float | None, compute: float | None, cache: float | None) -> None:
    busy = {Bottleneck.MEMORY: dram, Bottleneck.COMPUTE: compute, Bottleneck.CACHE: cache}
    found = bottleneck(dram, compute, cache)
    if found in busy:
        assert busy[found] >= 0.6
    elif found is Bottleneck.LATENCY:
        assert all(share is None or share < 0.6 for share in busy.values())
    else:
        assert (dram, compute, cache) == (None, None, None)


def test_a_launch_of_nothing_known_says_nothing() -> None:
    assert sentences(LaunchCounters("f", (1, 1, 1), 32, Bottleneck.UNKNOWN, "")) == ""
    assert sentences(LaunchCounters("f", (1, 1, 1), 32, Bottleneck.UNKNOWN, "", occupancy=1.0, stalls=(
        Stall("barrier", 0.5, "a barrier"),))) == ("Occupancy: 100% possible. Warps wait longest for a barrier (50% of "
                                                   "the time between two instructions).")


ONE = json.dumps({"launches": 1})


@pytest.mark.parametrize(("text", "out", "code", "words"), [
    ("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission", ONE, "not_permitted", "administrators alone"),
    ("", "==ERROR== ERR_NVGPUCTRPERM\n" + ONE, "not_permitted", "harness doctor"),
    ("", json.dumps({"fault": ["illegal_address", "it faulted."]}), "failed", "it faulted"),
    ("", json.dumps({"refused": ["arguments", "they differ."]}), "failed", "they differ"),
    ("==ERROR== Failed to load the driver\n", "", "failed", "measured nothing: Failed to load the driver"),
    (report(("_kernel", BUSY_MEMORY)), json.dumps({"launches": 2}), "failed", "1 launches where 2 were made"),
    (report(("_kernel", BUSY_MEMORY)), "killed", "failed", "1 launches where no were made"),
    (report(("_kernel", {metrics.TIME: "n/a"})), ONE, "failed", "read no counter"),
])
def test_why_there_are_no_counters(text: str, out: str, code: str, words: str) -> None:
    with pytest.raises(NoCounters) as caught:
        understood(text, out, TOOL)
    assert caught.value.code == code
    assert words in caught.value.text


def test_a_report_of_every_launch_is_taken() -> None:
    found = understood(report(("_kernel", BUSY_MEMORY)), f"hello\n{ONE}\n", TOOL)
    assert (len(found.rows), found.tool) == (1, TOOL)


def test_the_set_of_metrics_is_small_and_fixed() -> None:
    assert len(METRICS) == len(set(METRICS)) <= 45


def test_a_report_from_a_device_is_read() -> None:
    """Two operators' baselines on an H200, profiled with the driver 580.159.04 and version 2025.3.1 of the tool; the
    inputs held zeros, so the attention kernels met empty sequences."""
    rows = read_table(Path(__file__).with_name("h200_replay.csv").read_text("utf-8"))
    assert [row.function for row in rows] == ["_softmax"] * 3 + ["_attend"] * 3
    found = [launch_counters(row, replace(RESOURCES, function=row.function, grid=row.grid)) for row in rows]
    assert [one.bound for one in found] == [Bottleneck.COMPUTE, Bottleneck.MEMORY, *[Bottleneck.LATENCY] * 4]
    large = found[1]
    assert large.us == pytest.approx(105.184) and large.dram_gbps == pytest.approx(3514.4, rel=1e-4)
    assert (large.registers, large.limiter, large.occupancy, large.threads) == (32, "warps", 1.0, 128)
    assert large.text.startswith("Bound by memory: 73% of the peak of device memory (3,514 GB/s). 88% of the warp ")
    assert all(0.0 <= share <= 1.0 for one in found for share in (one.l2_hit, one.dram_share, one.sm_share)
               if share is not None)
    assert found[2].text.startswith("Bound by latency: no unit is busy (device memory 1%, multiprocessors 3%")
    assert "The grid fills 2% of what the device holds at once." in found[2].text
