"""A step that arithmetic would refuse is no round: the playbook holds every kernel against it before proposing one."""

from __future__ import annotations

import pytest

from harness.agents.playbook import edit
from harness.agents.playbook.agent import playable
from harness.agents.playbook.feasible import impossible
from harness.domain.vocabulary import Backend
from harness.evaluation.arithmetic import arithmetic
from harness.evaluation.run import Refused, Run
from harness.evaluation.source.params import read_params
from harness.operators import registry
from tests.harness.agents.test_elementwise_ladders import context, rungs
from tests.harness.judge.evaluations import make_run


def run_of(operator: str, source: str) -> Run:
    """An evaluation that has come as far as arithmetic."""
    run = make_run(registry.get(operator), Backend.TRITON, source, None)
    run.params = read_params(source)
    return run


@pytest.mark.parametrize("operator", registry.NAMES)
def test_what_is_proposed_first_passes_the_evaluator_s_arithmetic(operator: str) -> None:
    spec = registry.get(operator)
    ready = playable(context(operator, Backend.TRITON, spec.baseline(Backend.TRITON)))
    assert ready
    for item in ready:
        arithmetic(run_of(operator, item.source))


def test_a_step_is_left_out_where_it_cannot_run_and_comes_back_where_it_can() -> None:
    """A row of 32,768 columns: 256 values a thread for four warps, 64 for sixteen."""
    first = registry.get("rms_norm").baseline(Backend.TRITON)
    more = edit.set_params(first, {"num_warps": 16})
    made = {source: next(text for move, text in rungs("rms_norm", Backend.TRITON, source) if move.key == "block-32768")
            for source in (first, more)}
    contexts = {source: context("rms_norm", Backend.TRITON, source) for source in made}
    assert "272 registers" in impossible(contexts[first], made[first])
    assert impossible(contexts[more], made[more]) == ""
    keys = {source: {item.move.key for item in playable(contexts[source])} for source in made}
    assert "block-32768" not in keys[first] and "block-32768" in keys[more]


def test_one_bucket_that_cannot_run_is_enough() -> None:
    source = registry.get("matmul_bias_gelu").baseline(Backend.TRITON)
    table = {"BLOCK_M": {"few": 64, "some": 64, "many": 256}, "BLOCK_N": {"few": 64, "some": 64, "many": 256}}
    now = context("matmul_bias_gelu", Backend.TRITON, source)
    assert impossible(now, source) == ""
    changed = edit.set_params(source, table)
    assert "256 x 256" in impossible(now, changed)
    with pytest.raises(Refused) as refused:
        arithmetic(run_of("matmul_bias_gelu", changed))
    assert impossible(now, changed) == refused.value.reasons[0].text


def test_nothing_is_allotted_on_a_cpu() -> None:
    source = registry.get("rms_norm").baseline(Backend.NUMBA)
    now = context("rms_norm", Backend.NUMBA, source)
    assert impossible(now, source) == "" and playable(now)
