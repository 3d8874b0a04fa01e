"""The profile joins cost model, measurement and source; what was not timed stays unknown."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest

from harness.agents.playbook.edit import replace_body
from harness.agents.playbook.move import Move
from harness.agents.playbook.softmax_numba import NAME, Features, render
from harness.agents.profile import loops_over_input, profile_of
from harness.domain.codec import from_document, schema
from harness.domain.profile import Bottleneck, CounterProfile, ProfileSource
from harness.domain.summary import ShapeSummary, VerdictSummary
from harness.domain.vocabulary import Backend, Comparison, Direction, Outcome, Stage, Tier
from harness.operators import registry


def _verdict(*shares: float) -> VerdictSummary:
    points = registry.get("rms_norm").workloads["llm"].shapes[Backend.NUMBA]
    shapes = tuple(ShapeSummary(p.label, p.weight, 100.0, 20.0, s) for p, s in zip(points, shares, strict=True))
    return VerdictSummary("sha256:x", Outcome.PASSED, Stage.RECHECK, Comparison.FASTER, timed=True, shapes=shapes)


def test_bytes_and_flops_come_from_the_operator() -> None:
    spec = registry.get("rms_norm")
    profile = profile_of(spec, Backend.NUMBA, "llm", None, spec.baseline(Backend.NUMBA))
    point = spec.workloads["llm"].shapes[Backend.NUMBA][0]
    assert profile.shapes[0].bytes == spec.bytes_per_call(point.dims, 4)
    assert profile.shapes[0].intensity == pytest.approx(spec.flops_per_call(point.dims) / profile.shapes[0].bytes)
    assert profile.bound == "unknown" and profile.headroom is None and "not timed" in profile.text


@pytest.mark.parametrize(("shares", "bound"), [((0.9, 0.8, 0.9), "memory"), ((0.2, 0.3, 0.2), "instructions")])
def test_the_roof_says_what_binds(shares: tuple[float, ...], bound: str) -> None:
    spec = registry.get("rms_norm")
    profile = profile_of(spec, Backend.NUMBA, "llm", _verdict(*shares), spec.baseline(Backend.NUMBA))
    assert profile.bound == bound and profile.roof_share is not None and profile.headroom is not None
    points = spec.workloads["llm"].shapes[Backend.NUMBA]
    assert profile.headroom == pytest.approx(math.prod(share ** -point.weight for share, point in
                                                       zip(shares, points, strict=True)) - 1.0)


def test_a_launch_is_nothing_to_be_won_on_a_gpu() -> None:
    """Figures of an H200: a call of 2.55 us moves bytes that the roof takes 0.24 us for."""
    spec = registry.get("rms_norm")
    points = spec.workloads["llm"].shapes[Backend.TRITON]
    times = {"32x8192": (2.55, 0.096), "4096x4096": (19.04, 0.82), "8192x8192": (69.26, 0.897)}
    shapes = tuple(ShapeSummary(p.label, p.weight, times[p.label][0], 20.0, times[p.label][1]) for p in points)
    verdict = replace(_verdict(0.5, 0.5, 0.5), shapes=shapes)
    profile = profile_of(spec, Backend.TRITON, "llm", verdict, spec.baseline(Backend.TRITON))
    by_hand = math.prod((share + 2.0 / us) ** -p.weight for p in points for us, share in [times[p.label]])
    assert profile.headroom == pytest.approx(by_hand - 1.0) and 0.05 < profile.headroom < 0.15
    assert profile.roof_share is not None and 1 / profile.roof_share - 1 > 0.3  # what bytes alone would promise


def test_nothing_is_left_to_gain_at_the_roof() -> None:
    spec = registry.get("rms_norm")
    profile = profile_of(spec, Backend.NUMBA, "llm", _verdict(1.0, 1.2, 1.0), spec.baseline(Backend.NUMBA))
    assert profile.headroom == pytest.approx(0.0)


def test_passes_over_the_input_are_counted_through_views() -> None:
    two = ("def f(x, out):\n    row = x[0]\n    for i in range(3):\n        a = row[i]\n"
           "    for i in range(3):\n        out[i] = x[0, i]\n")
    one = "def f(x, out):\n    for r in range(2):\n        for i in range(3):\n            out[i] = x[r, i]\n"
    assert loops_over_input(two, "x") == 2 and loops_over_input(one, "x") == 1
    assert loops_over_input("def f(:", "x") is None


def test_keeping_exponentials_is_seen_as_fewer_passes() -> None:
    base = registry.get("softmax").baseline(Backend.NUMBA)
    kept = replace_body(base, NAME, render(Features(fused=True, reciprocal=False, plain=True)))
    before, after = loops_over_input(base, "x"), loops_over_input(kept, "x")
    assert before is not None and after is not None and after < before


def _counted(source: ProfileSource, *bounds: Bottleneck) -> VerdictSummary:
    """A verdict whose shapes were profiled; the last one was not."""
    base = from_document(schema("verdict")["examples"][1]["profile"], CounterProfile)
    verdict = _verdict(0.9, 0.3, 0.9)
    shapes = tuple(replace(base.shapes[0], shape=shape.shape, bound=bound, text=f"Bound by {bound}: figures.")
                   for shape, bound in zip(verdict.shapes, bounds, strict=False))
    return replace(verdict, counters=replace(base, source=source, shapes=shapes))


def test_counters_say_what_binds_and_are_cited() -> None:
    spec = registry.get("rms_norm")
    verdict = _counted(ProfileSource.COUNTERS, Bottleneck.LATENCY, Bottleneck.LATENCY)
    profile = profile_of(spec, Backend.NUMBA, "llm", verdict, spec.baseline(Backend.NUMBA))
    assert profile.bound == "latency"
    assert f"counters at {verdict.shapes[1].shape}: Bound by latency: figures" in profile.text  # the least one
    assert profile.shapes[0].counters is not None and profile.shapes[2].counters is None


def test_a_clock_alone_is_no_counter() -> None:
    spec = registry.get("rms_norm")
    verdict = _counted(ProfileSource.CLOCK, Bottleneck.UNKNOWN, Bottleneck.UNKNOWN)
    profile = profile_of(spec, Backend.NUMBA, "llm", verdict, spec.baseline(Backend.NUMBA))
    assert profile.bound in ("memory", "instructions") and "counters" not in profile.text


def test_shapes_without_counters_leave_the_bound() -> None:
    spec = registry.get("rms_norm")
    verdict = _counted(ProfileSource.COUNTERS, Bottleneck.CACHE)
    profile = profile_of(spec, Backend.NUMBA, "llm", verdict, spec.baseline(Backend.NUMBA))
    assert profile.bound == "cache" and f"counters at {verdict.shapes[0].shape}" in profile.text


@pytest.mark.parametrize(("source", "evidence"), [(ProfileSource.COUNTERS, "profile.counters"),
                                                  (ProfileSource.CLOCK, "profile.roof_share")])
def test_hypotheses_cite_counters_where_there_are_any(source: ProfileSource, evidence: str) -> None:
    spec = registry.get("rms_norm")
    verdict = _counted(source, Bottleneck.LATENCY)
    profile = profile_of(spec, Backend.NUMBA, "llm", verdict, spec.baseline(Backend.NUMBA))
    move = Move("h1", Direction.TILING, "_kernel", Tier.LIGHT, "Larger tiles.", "BLOCK 2048", 0.1, 0.1, lambda _: None)
    stated = move.hypothesis(SimpleNamespace(profile=profile))  # type: ignore[arg-type]
    assert stated.evidence == evidence and profile.text in stated.text
