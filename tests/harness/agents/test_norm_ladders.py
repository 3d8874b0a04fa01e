"""The ladders of add_rms_norm and layer_norm: what each step is, that their upper ends are right, and what fails."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

import pytest

from harness.agents.playbook import edit
from harness.agents.playbook.agent import BOOKS
from harness.agents.playbook.move import Move
from harness.agents.protocol import AgentContext
from harness.campaign.context import context_of
from harness.campaign.start import start_state
from harness.domain.goal import Goal
from harness.domain.vocabulary import Backend, Outcome, Tier
from harness.engine.actions import AskAgent
from harness.evaluation.source.tier import classify
from harness.evaluation.static.check import findings
from harness.evaluation.static.findings import Severity
from harness.operators import registry
from tests.harness.judge.evaluations import judged, judged_right, make_run

LADDERS = [
    ("add_rms_norm", Backend.NUMBA, ("relaxed-sum",)),
    ("layer_norm", Backend.NUMBA, ("relaxed-sum",)),
    ("add_rms_norm", Backend.TRITON, ("one-read", "inputs-stay")),
    ("layer_norm", Backend.TRITON, ("one-read", "two-reads")),
]


def start(operator: str, backend: Backend) -> AgentContext:
    hardware = "cpu-test-1t" if backend is Backend.NUMBA else "nvidia-h200"
    goal = Goal(operator, backend, hardware, "llm", grant=Tier.HEAVY)
    return context_of(start_state(goal), AskAgent(1, "diagnosis"))


def on(context: AgentContext, source: str) -> AgentContext:
    return replace(context, incumbent=replace(context.incumbent, source=source))


def moves(context: AgentContext) -> dict[str, Move]:
    book = import_module(BOOKS[context.spec.name, context.goal.backend])
    return {move.key: move for move in book.moves(context)}


def climbed(operator: str, backend: Backend, keys: tuple[str, ...]) -> AgentContext:
    """The context whose incumbent the steps ``keys`` lead to."""
    context = start(operator, backend)
    for key in keys:
        source = moves(context)[key].transform(context)
        assert source is not None, key
        context = on(context, source)
    return context


@pytest.mark.parametrize(("operator", "backend", "keys"), LADDERS)
def test_every_step_from_the_ends_of_a_ladder_keeps_the_contract_and_its_tier(
    operator: str, backend: Backend, keys: tuple[str, ...]
) -> None:
    applied = set()
    for height in sorted({0, 1, len(keys)}):
        context = climbed(operator, backend, keys[:height])
        for key, move in moves(context).items():
            source = move.transform(context)
            if source is None:
                continue
            applied.add(key)
            found = findings(source, context.spec, backend, context.goal.prohibited)
            assert not [one for one in found if one.severity is Severity.BLOCK], key
            assert classify(context.incumbent.source, source, context.spec, backend).tier is move.tier, key
            assert 0.0 <= move.expected_gain(context) <= move.most
            assert move.text in move.hypothesis(context).text
    assert applied >= set(keys)
    tiers = {move.tier for key, move in moves(start(operator, backend)).items() if key in applied}
    assert tiers == {Tier.LIGHT, Tier.MEDIUM, Tier.HEAVY}


@pytest.mark.parametrize(("operator", "backend", "keys"), LADDERS)
def test_a_step_that_was_made_does_not_come_again(operator: str, backend: Backend, keys: tuple[str, ...]) -> None:
    context = climbed(operator, backend, keys)
    assert all(moves(context)[key].transform(context) is None for key in keys)


@pytest.mark.parametrize("operator", ["add_rms_norm", "layer_norm"])
def test_templates_leave_foreign_kernels_alone(operator: str) -> None:
    for backend in Backend:
        context = start(operator, backend)
        name = f"_{operator}"
        foreign = context.incumbent.source.replace(f"def {name}(x, ", f"def {name}(values, ")
        for key, move in moves(context).items():
            source = move.transform(on(context, foreign))
            assert source is None or edit.params(source) != edit.params(foreign) or key == "full-fastmath", key


@pytest.mark.slow
@pytest.mark.sandbox
@pytest.mark.parametrize(("operator", "keys"), [
    ("add_rms_norm", LADDERS[2][2]),
    ("add_rms_norm", ("one-read", "rounded-sum")),
    ("layer_norm", LADDERS[3][2]),
    ("layer_norm", ("one-read", "results-stay")),
    ("layer_norm", ("one-read", "row-pairs")),
    ("layer_norm", ("split-reduction",)),
], ids=lambda value: value if isinstance(value, str) else value[-1])
def test_upper_ends_on_triton_are_right(operator: str, keys: tuple[str, ...]) -> None:
    from harness.evaluation.sandbox import opener

    source = climbed(operator, Backend.TRITON, keys).incumbent.source
    outcome, reason = judged_right(make_run(registry.get(operator), Backend.TRITON, source, opener))
    assert outcome is Outcome.PASSED, reason


@pytest.mark.sandbox
@pytest.mark.parametrize("backend", list(Backend))
def test_the_tempting_step_of_layer_norm_fails_honestly(backend: Backend) -> None:
    """A variance that cancels is one reduction cheaper, and the case far from 0 refuses it."""
    from harness.evaluation.sandbox import opener

    first = "relaxed-sum" if backend is Backend.NUMBA else "one-read"
    source = climbed("layer_norm", backend, (first, "mean-of-squares")).incumbent.source
    outcome, reason = judged(make_run(registry.get("layer_norm"), backend, source, opener))
    assert outcome in (Outcome.INCORRECT_NUMERIC, Outcome.INCORRECT_NAN)
    assert "offset" in (reason.case or "")
