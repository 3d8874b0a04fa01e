"""Ladders of the elementwise operators: every rung keeps the contract and its tier, and what it makes is right."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

import pytest

from harness.agents.playbook import rope_kernels, swiglu_kernels
from harness.agents.playbook.agent import BOOKS
from harness.agents.playbook.move import Move
from harness.agents.profile import profile_of
from harness.agents.protocol import AgentContext, LogBook
from harness.domain.digest import digest_bytes
from harness.domain.goal import Goal
from harness.domain.request import SourceRef
from harness.domain.vocabulary import Backend, Outcome, Stage, Tier
from harness.evaluation.judge.checking import check
from harness.evaluation.judge.inputs import make_inputs
from harness.evaluation.judge.lending import Lending
from harness.evaluation.judge.oracle import expect
from harness.evaluation.source.normal_form import normal_digest
from harness.evaluation.source.tier import classify
from harness.evaluation.static.check import findings
from harness.evaluation.static.findings import Severity
from harness.operators.registry import get
from harness.operators.rope.cases import sizes
from tests.harness.judge.evaluations import judged_right, make_run
from tests.harness.judge.plain_worker import PlainWorker

BOOKED = [(operator, backend) for operator in ("swiglu", "rope") for backend in Backend]


def context(operator: str, backend: Backend, source: str) -> AgentContext:
    spec, incumbent = get(operator), SourceRef(digest_bytes(source.encode()), source)
    hardware = "nvidia-h200" if backend is Backend.TRITON else "cpu-test-2t"
    return AgentContext(
        goal=Goal(operator, backend, hardware, "llm", grant=Tier.HEAVY), spec=spec, grant=Tier.HEAVY, round=1,
        purpose="candidate", log=LogBook(), baseline=incumbent, incumbent=incumbent, incumbent_round=0,
        incumbent_normal=normal_digest(source), baseline_verdict=None, incumbent_verdict=None,
        profile=profile_of(spec, backend, "llm", None, source), hardware={"multiprocessors": 132},
    )


def rungs(operator: str, backend: Backend, source: str) -> Iterator[tuple[Move, str]]:
    """All moves that apply to ``source``, with what they make."""
    now = context(operator, backend, source)
    for move in import_module(BOOKS[operator, backend]).moves(now):
        made = move.transform(now)
        if made is not None:
            yield move, made


def two_steps(operator: str, backend: Backend) -> dict[str, tuple[str, str, Move]]:
    """Kernels at most two rungs above the baseline by their path, values of PARAMS alone on the baseline only: what
    they were made of, themselves, the last move."""
    first = get(operator).baseline(backend)
    found = {move.key: (first, made, move) for move, made in rungs(operator, backend, first)}
    for key, (_, source, before) in list(found.items()):
        if before.tier is not Tier.LIGHT:
            found |= {f"{key}/{move.key}": (source, made, move) for move, made in rungs(operator, backend, source)
                      if move.tier is not Tier.LIGHT}
    return found


@pytest.mark.parametrize(("operator", "backend"), BOOKED)
def test_every_rung_keeps_contract_and_tier_and_says_what_it_expects(operator: str, backend: Backend) -> None:
    found = two_steps(operator, backend)
    assert {move.tier for _, _, move in found.values()} == {Tier.LIGHT, Tier.MEDIUM, Tier.HEAVY}
    for path, (before, after, move) in found.items():
        assert normal_digest(after) != normal_digest(before), path
        assert classify(before, after, get(operator), backend).tier is move.tier, path
        blocked = [one for one in findings(after, get(operator), backend) if one.severity is Severity.BLOCK]
        assert not blocked, (path, blocked)
        assert move.text.endswith(".") and move.most > 0.0 and move.about in ("bytes", "flops", "occupancy", "latency")
        assert move.expected_gain(context(operator, backend, before)) >= 0.0


def left_wrong(operator: str, source: str) -> set[str]:
    """Regimes of a small problem on which a numba kernel is wrong, its bodies run as plain Python."""
    spec, worker = get(operator), PlainWorker()
    worker.load(source)
    dims = {"rows": 2, "cols": 67} if operator == "swiglu" else sizes(2, 3, 3, 2, 5)
    wrong = set()
    for regime in ("normal", "wide", "nan", "neg_inf", *(("tails", "large_ups") if operator == "swiglu" else ())):
        inputs = make_inputs(spec, dims, regime, {}, "float32", 3)
        with Lending(spec, inputs, {}, "float32") as lending:
            worker.call(lending.lent, {})
            result = check(lending, expect(spec, dims, inputs, {}, "float32"), Stage.SMOKE)
        wrong |= {regime} if result.faults else set()
    return wrong


@pytest.mark.parametrize("operator", ["swiglu", "rope"])
def test_rungs_on_numba_are_right_but_for_the_one_that_trades_too_much(operator: str) -> None:
    """On small problems in plain Python; compiled they run in campaigns."""
    wrong = set()
    for path, (_, source, move) in two_steps(operator, Backend.NUMBA).items():
        if move.tier is Tier.LIGHT or "fastmath" in source or "prange" in source:
            continue  # the same to plain Python as what they were made of, which is among the others
        wrong |= {path} if left_wrong(operator, source) else set()
    assert {path.split("/")[-1] for path in wrong} == ({"coarser-polynomial"} if operator == "swiglu" else set())


def forms() -> list[tuple[str, str, str]]:
    row, head = get("swiglu").baseline(Backend.TRITON), get("rope").baseline(Backend.TRITON)
    blocks = rope_kernels.relaunch(head, "blocks")
    flat = swiglu_kernels.regrid(row, "flat")
    assert blocks is not None and flat is not None
    return [
        ("swiglu", "flat, hints, fast", swiglu_kernels.to(flat, hints=True, fast=True) or ""),
        ("rope", "shared, hints", rope_kernels.to(head, shared=True, hints=True) or ""),
        ("rope", "blocks", blocks),
        ("rope", "blocks of whole heads", rope_kernels.to(blocks, whole=True) or ""),
    ]


FORMS = forms()


@pytest.mark.sandbox
@pytest.mark.parametrize(("operator", "source"), [(one, source) for one, _, source in FORMS],
                         ids=[f"{one}: {what}" for one, what, _ in FORMS])
def test_forms_on_triton_are_right_in_the_interpreter(operator: str, source: str) -> None:
    from harness.evaluation.sandbox import opener

    assert judged_right(make_run(get(operator), Backend.TRITON, source, opener)) == (Outcome.PASSED, None)


def test_a_form_is_known_by_its_text_and_left_alone_where_it_is_another() -> None:
    for operator, what, source in FORMS:
        kernels = {"swiglu": swiglu_kernels, "rope": rope_kernels}[operator]
        assert kernels.form_of(source) is not None, what
        foreign = source.replace("mask", "inside")
        assert kernels.form_of(foreign) is None
        assert kernels.to(foreign, hints=True) is None
    assert swiglu_kernels.regrid(FORMS[0][2], "flat") is None
    assert rope_kernels.relaunch(FORMS[2][2], "blocks") is None
