"""Ladders of decode_attention on Triton and of matmul_bias_gelu: rungs keep contract and tier, the ends are right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import pytest

from harness.agents.playbook import decode_attention_kernels, edit, matmul_bias_gelu_kernels, matmul_bias_gelu_numba
from harness.agents.playbook.agent import playable
from harness.agents.protocol import Attempt
from harness.domain.request import SourceRef
from harness.domain.summary import VerdictSummary
from harness.domain.vocabulary import Backend, Comparison, Outcome, Stage, Tier
from harness.evaluation.judge.checking import check
from harness.evaluation.judge.inputs import make_inputs
from harness.evaluation.judge.lending import Lending
from harness.evaluation.judge.oracle import expect
from harness.evaluation.source.normal_form import normal_digest
from harness.evaluation.source.tier import classify
from harness.evaluation.static.check import findings
from harness.evaluation.static.findings import Severity
from harness.operators.base import Case
from harness.operators.registry import get
from tests.harness.agents.test_elementwise_ladders import context, rungs
from tests.harness.judge.evaluations import judged_right, make_run
from tests.harness.judge.plain_worker import PlainWorker

BOOKED = [("decode_attention", Backend.TRITON), *(("matmul_bias_gelu", backend) for backend in Backend)]
HIGHEST = {
    ("decode_attention", Backend.TRITON): ("split-cache", "split-by-length", "values-by-length", "shorter-way"),
    ("matmul_bias_gelu", Backend.TRITON): ("descriptors", "whole-steps", "bands", "powers-of-two", "split-sums"),
    ("matmul_bias_gelu", Backend.NUMBA): ("vector-gelu", "four-terms", "four-rows", "contract"),
}
CLIMB = ("tiles-by-rows", "descriptors", "descriptors-for-all")
"""The rungs that a campaign on a GPU takes of the product's ladder."""


def climbed(operator: str, backend: Backend, keys: tuple[str, ...]) -> str:
    """The kernel that the moves called ``keys`` make of the baseline, one after the other."""
    source = get(operator).baseline(backend)
    for key in keys:
        source = next(made for move, made in rungs(operator, backend, source) if move.key == key)
    return source


@pytest.mark.parametrize(("operator", "backend"), BOOKED)
def test_every_rung_keeps_contract_and_tier(operator: str, backend: Backend) -> None:
    """All rungs of the baseline, and those of the ladder's way up that are no values alone."""
    first = get(operator).baseline(backend)
    steps = [(first, made, move) for move, made in rungs(operator, backend, first)]
    assert {move.tier for _, _, move in steps} == {Tier.LIGHT, Tier.MEDIUM, Tier.HEAVY}
    high = climbed(operator, backend, HIGHEST[operator, backend][:2])
    steps += [(high, made, move) for move, made in rungs(operator, backend, high) if move.tier is not Tier.LIGHT]
    for before, after, move in steps:
        assert normal_digest(after) != normal_digest(before), move.key
        assert classify(before, after, get(operator), backend).tier is move.tier, move.key
        blocked = [one for one in findings(after, get(operator), backend) if one.severity is Severity.BLOCK]
        assert not blocked, (move.key, blocked)
        assert move.expected_gain(context(operator, backend, before)) >= 0.0, move.key


@pytest.mark.parametrize(("operator", "backend"), [pair for pair in BOOKED if pair[1] is Backend.TRITON])
def test_tables_over_buckets_are_allowed_at_both_ends(operator: str, backend: Backend) -> None:
    spec = get(operator)
    assert spec.buckets is not None
    names = [name for name, _ in spec.buckets.bounds]
    for source in (spec.baseline(backend), climbed(operator, backend, HIGHEST[operator, backend])):
        held = {key: value for key, value in edit.params(source).items() if not isinstance(value, dict)}
        tables = edit.set_params(source, {key: dict.fromkeys(names, value) for key, value in held.items()})
        blocked = [one for one in findings(tables, spec, backend) if one.severity is Severity.BLOCK]
        assert not blocked, [one.reason.text for one in blocked]
        assert classify(source, tables, spec, backend).tier is Tier.LIGHT


@pytest.mark.parametrize(("forms", "flags"), [(decode_attention_kernels, ("two",)),
                                              (matmul_bias_gelu_kernels, ("banded", "peeled", "two"))])
def test_a_form_is_read_from_the_text_that_it_gives(forms, flags: tuple[str, ...]) -> None:  # type: ignore[no-untyped-def]
    operator = "decode_attention" if forms is decode_attention_kernels else "matmul_bias_gelu"
    source = get(operator).baseline(Backend.TRITON)
    for chosen in product((False, True), repeat=len(flags)):
        form = forms.Form(**dict(zip(flags, chosen, strict=True)))
        assert forms.form_of(edit.replace_body(source, forms.NAME, forms.body(form))) == form
    assert forms.form_of(source.replace(f"def {forms.NAME}(", "def other(")) is None


def test_a_form_of_split_attention_is_read_from_the_text_that_it_gives() -> None:
    """Parts and the kernel that combines them have the form together with the one for whole sequences, whichever way
    led there."""
    forms, split = decode_attention_kernels, climbed("decode_attention", Backend.TRITON, ("split-cache",))
    assert forms.form_of(split) == forms.Form()
    ways = {"powers-of-two": forms.Form(two=True), "whole-blocks": forms.Form(peeled=True),
            "early-combine": forms.Form(dependent=True), "shorter-way": forms.Form(True, True, True)}
    for key, form in ways.items():
        made = climbed("decode_attention", Backend.TRITON, ("split-cache", key))
        assert forms.form_of(made) == form, key
        for name, text in ((forms.PART, forms.part(form)), (forms.COMBINE_NAME, forms.combine(form))):
            assert edit.function_text(made, name) == text.rstrip("\n"), (key, name)
    single = climbed("decode_attention", Backend.TRITON,
                     ("split-cache", "powers-of-two", "whole-blocks", "early-combine"))
    assert single == climbed("decode_attention", Backend.TRITON, ("split-cache", "shorter-way"))


def _wrong_regimes(source: str) -> set[str]:
    """Regimes of a small product on which a numba kernel is wrong, its bodies run as plain Python."""
    spec, worker = get("matmul_bias_gelu"), PlainWorker()
    worker.load(source)
    dims, wrong = {"m": 6, "k": 11, "n": 13}, set()
    for regime in ("normal", "huge", "nan", "b_nan", "sweep"):
        inputs = make_inputs(spec, dims, regime, {}, "float32", 3)
        with Lending(spec, inputs, {}, "float32") as lending:
            worker.call(lending.lent, {})
            result = check(lending, expect(spec, dims, inputs, {}, "float32"), Stage.SMOKE)
        if result.faults:
            wrong.add(regime)
    return wrong


def test_every_numba_rung_of_the_product_is_right() -> None:
    first = get("matmul_bias_gelu").baseline(Backend.NUMBA)
    assert matmul_bias_gelu_numba.form_of(first) == matmul_bias_gelu_numba.Form()
    assert _wrong_regimes(first) == set()
    for place, key in enumerate(HIGHEST["matmul_bias_gelu", Backend.NUMBA]):
        source = climbed("matmul_bias_gelu", Backend.NUMBA, HIGHEST["matmul_bias_gelu", Backend.NUMBA][: place + 1])
        assert _wrong_regimes(source) == set(), key
    for move, made in rungs("matmul_bias_gelu", Backend.NUMBA, first):
        assert _wrong_regimes(made) == set(), move.key


def _small_tiles(source: str) -> str:
    """Descriptors for few rows too, and tiles that small problems have several of."""
    values = {"BLOCK_M": 32, "BLOCK_N": 64, "BLOCK_K": 32, "num_warps": 4, "num_stages": 2}
    return edit.set_params(source, values).replace("if m > 1024 and lined", "if lined")


@pytest.mark.slow
@pytest.mark.sandbox
@pytest.mark.parametrize(("operator", "keys", "change"), [
    ("decode_attention", HIGHEST["decode_attention", Backend.TRITON], str),
    ("matmul_bias_gelu", HIGHEST["matmul_bias_gelu", Backend.TRITON], _small_tiles),
    ("matmul_bias_gelu", CLIMB, str),
])
def test_the_highest_rung_on_triton_is_right(operator: str, keys: tuple[str, ...], change: Callable[[str], str]
                                             ) -> None:
    from harness.evaluation.sandbox import opener

    source = change(climbed(operator, Backend.TRITON, keys))
    outcome, reason = judged_right(make_run(get(operator), Backend.TRITON, source, opener))
    assert outcome is Outcome.PASSED, reason


@pytest.mark.sandbox
def test_a_nan_in_a_column_that_descriptors_bring_stays_there() -> None:
    """A result that shared a reciprocal with another half of its tile took that half's NaN."""
    from harness.evaluation.sandbox import opener

    cases = tuple(Case(regime, {"m": 9, "k": 40, "n": 136}, regime, "rows of whole descriptors", smoke=True)
                  for regime in ("b_nan", "nan", "huge"))
    spec = replace(get("matmul_bias_gelu"), interpret_cases=cases)
    source = climbed("matmul_bias_gelu", Backend.TRITON, CLIMB)
    outcome, reason = judged_right(make_run(spec, Backend.TRITON, source, opener))
    assert outcome is Outcome.PASSED, reason


def test_the_product_s_climb_goes_from_tables_to_descriptors_for_all() -> None:
    """By predictions alone; what touches the other kernel stays away once no shape of the workload takes it."""
    source, taken = get("matmul_bias_gelu").baseline(Backend.TRITON), list[str]()
    while ready := playable(context("matmul_bias_gelu", Backend.TRITON, source)):
        if len(taken) == len(CLIMB):
            break
        taken.append(ready[0].move.key)
        source = ready[0].source
    assert tuple(taken) == CLIMB
    assert {item.move.key for item in ready} == {"four-stages", "tall-tiles"}


def test_descriptors_for_all_come_in_one_step_where_those_for_many_rows_were_not_kept() -> None:
    tables = climbed("matmul_bias_gelu", Backend.TRITON, CLIMB[:1])
    now = context("matmul_bias_gelu", Backend.TRITON, tables)
    assert "descriptors-for-all" not in {item.move.key for item in playable(now)}
    verdict = VerdictSummary("0" * 64, Outcome.PASSED, Stage.PROBES, Comparison.SLOWER)
    lost = Attempt(2, "descriptors", "layout:_matmul", SourceRef("0" * 64, ""), None, verdict)
    found = {item.move.key: item for item in playable(replace(now, round=3, attempts=(lost,)))}
    assert found["descriptors-for-all"].source == climbed("matmul_bias_gelu", Backend.TRITON, CLIMB)
    assert found["descriptors-for-all"].hypothesis.expected_gain > found["powers-of-two"].hypothesis.expected_gain


@pytest.mark.sandbox
@pytest.mark.parametrize(("offset", "width", "kernel"), [(0, 1024, "_described"), (1, 1024, "_matmul"),
                                                         (0, 1023, "_matmul")])
def test_what_no_descriptor_describes_goes_by_pointers(offset: int, width: int, kernel: str) -> None:
    """Bases and rows of descriptors are multiples of 16 bytes."""
    from harness.backends.triton.planning import record_one
    from harness.backends.triton.targets import find_target
    from harness.evaluation.sandbox import opener

    target, sizes = find_target("nvidia-h200"), {"a": [2048, 1024], "b": [1024, width], "bias": [width],
                                                 "out": [2048, width]}
    arguments = [{"name": name, "kind": "output" if name == "out" else "input", "dtype": "bfloat16", "shape": shape,
                  "strides": [*shape[1:], 1], "offset": offset if name == "b" else 0}
                 for name, shape in sizes.items()]
    worker = opener("triton-plan").open(deadline_s=60.0, options={"target": target.name})
    try:
        worker.load(climbed("matmul_bias_gelu", Backend.TRITON, CLIMB))
        plan = record_one(worker, arguments, {}, target)
    finally:
        worker.close()
    assert plan.refusals == ()
    assert [step["launch"]["function"] for step in plan.steps] == [kernel]


@pytest.mark.sandbox
def test_whole_steps_of_large_tiles_spill_no_registers() -> None:
    """A masked rest behind the loop spilled 8 and 112 bytes on these tiles: its operands met a full accumulator."""
    from harness.backends.triton.compiler.compiled import compile_plans
    from harness.backends.triton.compiler.process import compiler_for
    from harness.backends.triton.planning import record_plans
    from harness.backends.triton.targets import find_target
    from harness.evaluation.sandbox import opener

    spec, target = get("matmul_bias_gelu"), find_target("nvidia-h200")
    source = climbed("matmul_bias_gelu", Backend.TRITON, ("tiles-by-rows", "whole-steps"))
    points = [point for point in spec.workloads["llm"].shapes[Backend.TRITON] if point.dims["m"] > 64]
    worker = opener("triton-plan").open(deadline_s=60.0, options={"target": target.name})
    try:
        plans = record_plans(worker, source, spec.arguments, points, "bfloat16", target, {})
    finally:
        worker.close()
    rows = [row for one in compile_plans(plans, compiler_for(target), deadline_s=60.0) for row in one.launches]
    assert {row.grid[0] for row in rows} == {512, 128}
    assert [row.spill_bytes for row in rows] == [0, 0]
