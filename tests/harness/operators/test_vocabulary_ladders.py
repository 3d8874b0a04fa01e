"""Strategies for cross_entropy and topk: every step keeps the contract and its tier, and the upper ends are right."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from importlib import import_module
from types import SimpleNamespace

import pytest

from harness.agents.playbook.agent import BOOKS
from harness.agents.playbook.move import Move
from harness.domain.request import SourceRef
from harness.domain.vocabulary import Backend, Outcome, Stage, Tier
from harness.evaluation.judge.correctness import correctness
from harness.evaluation.judge.session import end_session
from harness.evaluation.judge.smoke import smoke
from harness.evaluation.source.tier import classify
from harness.evaluation.static.stage import static
from harness.operators import registry
from tests.harness.judge.evaluations import judged_right, make_run
from tests.harness.judge.plain_worker import PlainOpener

LADDERS = [(operator, backend) for operator in ("cross_entropy", "topk") for backend in Backend]
ORDER = list(Tier)


def context(operator: str, backend: Backend, source: str) -> SimpleNamespace:
    goal = SimpleNamespace(operator=operator, backend=backend, hardware="cpu-test-1t")
    return SimpleNamespace(incumbent=SimpleNamespace(source=source), spec=registry.get(operator), goal=goal, threads=1,
                           profile=SimpleNamespace(headroom=None, text="nothing was timed"), hardware={})


def steps(operator: str, backend: Backend, source: str) -> Iterator[tuple[Move, str]]:
    now = context(operator, backend, source)
    for move in import_module(BOOKS[operator, backend]).moves(now):
        changed = move.transform(now)
        if changed is not None:
            yield move, changed


def reached(operator: str, backend: Backend, *keys: str) -> str:
    """The kernel after the moves called ``keys``."""
    source = registry.get(operator).baseline(backend)
    for key in keys:
        source = next(changed for move, changed in steps(operator, backend, source) if move.key == key)
    return source


@pytest.mark.parametrize(("operator", "backend"), LADDERS)
def test_every_step_keeps_the_contract_and_its_tier(operator: str, backend: Backend) -> None:
    spec = registry.get(operator)
    start = spec.baseline(backend)
    first = list(steps(operator, backend, start))
    assert {move.tier for move, _ in first} >= {Tier.MEDIUM, Tier.HEAVY}
    tiers = {move.tier for _, made in first for move, _ in steps(operator, backend, made)}
    second = [(made, move, changed) for found, made in first if found.tier is not Tier.LIGHT
              for move, changed in steps(operator, backend, made) if move.tier is not Tier.LIGHT]
    for before, move, after in [(start, move, changed) for move, changed in first] + second:
        assert after != before
        run = make_run(spec, backend, after, None)
        run.request = dataclasses.replace(run.request, candidate=SourceRef("", after))
        static(run)
        assert [note.text for note in run.notes if note.code in ("loop_condition", "shape_branch")] == [], move.key
        tier = classify(before, after, spec, backend).tier
        assert tier is not None and ORDER.index(tier) <= ORDER.index(move.tier), (move.key, tier)
        tiers.add(move.tier)
    assert tiers == {Tier.LIGHT, Tier.MEDIUM, Tier.HEAVY}


@pytest.mark.parametrize(
    ("operator", "keys"),
    [
        ("cross_entropy", ("online-blocks",)),
        ("cross_entropy", ("bitwise-exp", "row-function")),
        ("topk", ("skip-blocks",)),
        ("topk", ("heap",)),
    ],
)
def test_upper_ends_on_numba_are_right_in_every_small_case(operator: str, keys: tuple[str, ...]) -> None:
    source = reached(operator, Backend.NUMBA, *keys)
    run = make_run(registry.get(operator), Backend.NUMBA, source, PlainOpener(), small=True)
    for stage, work in ((Stage.SMOKE, smoke), (Stage.CORRECTNESS, correctness)):
        run.stage = stage
        work(run)
    end_session(run)
    assert len(run.correctness.cases) > 20 and all(case.passed for case in run.correctness.cases)


@pytest.mark.slow
@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("operator", "keys"),
    [
        ("cross_entropy", ("lane-maxima", "eight-loads")),
        ("cross_entropy", ("split-vocabulary",)),
        ("topk", ("group-maxima", "four-parts")),
        ("topk", ("bounded-search",)),
    ],
)
def test_upper_ends_on_triton_are_right_in_the_interpreter(operator: str, keys: tuple[str, ...]) -> None:
    from harness.evaluation.sandbox import opener

    source = reached(operator, Backend.TRITON, *keys)
    outcome, reason = judged_right(make_run(registry.get(operator), Backend.TRITON, source, opener))
    assert outcome is Outcome.PASSED, reason
