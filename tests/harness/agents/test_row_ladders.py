"""The ladders of rms_norm and softmax on Triton: every step is what it says it is, from every incumbent on the way."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator

import pytest

from harness.agents.playbook import arithmetic, edit, rms_norm_kernels, rms_norm_triton, softmax_kernels, softmax_triton
from harness.agents.playbook.move import BASIS_OF, Move
from harness.agents.protocol import AgentContext
from harness.campaign.context import context_of
from harness.campaign.start import start_state
from harness.domain.digest import digest_source
from harness.domain.goal import Goal
from harness.domain.request import SourceRef
from harness.domain.summary import ShapeSummary, VerdictSummary
from harness.domain.vocabulary import Backend, Direction, Outcome, Stage, Tier
from harness.engine.actions import AskAgent
from harness.engine.results import BaselineMeasured
from harness.engine.step import apply
from harness.evaluation.source.tier import classify
from harness.evaluation.static.check import findings
from harness.evaluation.static.findings import Severity
from harness.operators import registry

BOOKS = {"rms_norm": rms_norm_triton, "softmax": softmax_triton}
KERNELS = {"rms_norm": rms_norm_kernels, "softmax": softmax_kernels}
US = {"rms_norm": {"4096x4096": 22.0, "8192x8192": 96.0, "32x8192": 7.3},
      "softmax": {"4096x4096": 26.0, "8192x8192": 112.0, "32x128256": 39.0}}
"""Microseconds of the baselines, about, as an H200 has them."""


@functools.cache
def baseline_context(operator: str, timed: bool) -> AgentContext:
    goal = Goal(operator, Backend.TRITON, "nvidia-h200", "llm", grant=Tier.HEAVY)
    state = start_state(goal)
    points = registry.get(operator).workloads["llm"].shapes[Backend.TRITON]
    shapes = tuple(ShapeSummary(p.label, p.weight, US[operator][p.label], roof_share=0.5) for p in points)
    verdict = VerdictSummary("sha256:0", Outcome.PASSED, Stage.RECHECK, timed=True, shapes=shapes)
    state = apply(state, BaselineMeasured(verdict)) if timed else state
    return context_of(state, AskAgent(1, "diagnosis"), hardware={"multiprocessors": 132})


def context(operator: str, source: str | None = None, *, timed: bool = True) -> AgentContext:
    """The first turn of a heavy campaign with ``source`` as its incumbent."""
    found = baseline_context(operator, timed)
    return found if source is None else dataclasses.replace(found, incumbent=SourceRef(digest_source(source), source))


def steps(operator: str) -> Iterator[tuple[str, Move, str]]:
    """Incumbent, strategy and what it makes, for every strategy where it first applies on a climb that takes all of
    them in turn."""
    source = context(operator).baseline.source
    seen: set[str] = set()
    climbed: set[str] = set()
    while True:
        now = context(operator, source)
        made = {move.key: (move, text) for move in BOOKS[operator].moves(now)
                if (text := move.transform(now)) is not None}
        for key, (move, text) in made.items():
            if key not in seen:
                seen.add(key)
                yield source, move, text
        up = next((key for key in made if key not in climbed and key != "split-reduction"), None)
        if up is None:
            return
        climbed.add(up)
        source = made[up][1]


@pytest.mark.parametrize("operator", list(BOOKS))
def test_every_step_has_the_tier_it_says_and_keeps_the_rules(operator: str) -> None:
    spec = registry.get(operator)
    keys = set()
    for incumbent, move, source in steps(operator):
        keys.add(move.key)
        assert classify(incumbent, source, spec, Backend.TRITON).tier is move.tier, move.key
        found = findings(source, spec, Backend.TRITON, Goal(operator, Backend.TRITON, "nvidia-h200", "llm").prohibited)
        assert not [f for f in found if f.severity is Severity.BLOCK], (move.key, found)
        for function in (name for name in edit.functions(source) if name != "run"):
            assert f"{function}[" in edit.function_text(source, "run"), (move.key, "a kernel that nobody launches")
    book = {move.key for move in BOOKS[operator].moves(context(operator))}
    assert keys == book, "some strategy never applied"
    assert {move.tier for move in BOOKS[operator].moves(context(operator))} == {Tier.LIGHT, Tier.MEDIUM, Tier.HEAVY}


@pytest.mark.parametrize("operator", list(BOOKS))
def test_bodies_are_recognised_by_their_text(operator: str) -> None:
    kernels, spec = KERNELS[operator], registry.get(operator)
    baseline = spec.baseline(Backend.TRITON)
    assert kernels.form_of(baseline) == kernels.Form() and kernels.launches_of(baseline) is not None
    for text, form in kernels.FORMS.items():
        assert kernels.form_of(edit.replace_body(baseline, kernels.NAME, text)) == form
    assert kernels.form_of(edit.replace_body(baseline, kernels.NAME, "    row = tl.program_id(0)\n")) is None


@pytest.mark.parametrize("operator", list(BOOKS))
def test_predictions_are_reckoned_from_the_measured_shapes(operator: str) -> None:
    measured = {move.key: move for move in BOOKS[operator].moves(context(operator))}
    for key, move in measured.items():
        gain = move.expected_gain(context(operator))
        assert 0.0 <= gain < 1.0, key
        assert move.about in ("bytes", "flops", "occupancy", "latency")
        assert f"Reckoned in {move.about}." in move.hypothesis(context(operator)).text
        assert move.expected_gain(context(operator, timed=False)) <= 1.0
    assert measured["one-read"].expected_gain(context(operator)) > 0.2  # half the roof is left, and x was read again


def test_a_wait_that_is_saved_counts_where_few_blocks_run() -> None:
    move = next(m for m in rms_norm_triton.moves(context("rms_norm")) if m.key == "early-weight")
    wait = 7.3 / (7.3 - 0.7)
    assert move.expected_gain(context("rms_norm")) == pytest.approx(wait**0.2 - 1, abs=1e-3)
    assert 0.0 < move.expected_gain(context("rms_norm", timed=False)) < 0.1  # from the bytes alone


def test_few_long_rows_are_spread_over_the_device() -> None:
    move = next(m for m in softmax_triton.moves(context("softmax")) if m.key == "split-rows")
    spread = 39.0 / (39.0 * 32 / 132 + arithmetic.LAUNCH_US)
    assert move.expected_gain(context("softmax")) == pytest.approx(spread**0.2 - 1, abs=1e-3)


def test_every_direction_has_a_basis() -> None:
    assert set(BASIS_OF) == set(Direction)
