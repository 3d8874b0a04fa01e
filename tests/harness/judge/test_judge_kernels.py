"""Baselines pass all of the judge's stages and every wrong kernel is refused for what is wrong with it."""

from __future__ import annotations

from typing import Any

import pytest

from harness.domain.verdict import Reason
from harness.domain.vocabulary import Backend, Outcome
from harness.operators import registry
from harness.operators.base import OperatorSpec, WrongKernel
from tests.harness.judge.evaluations import judged, make_run
from tests.harness.judge.plain_worker import CompiledWorker, PlainOpener, PlainWorker

OPERATORS = registry.all_operators()
SLOW_IN_PYTHON = {("decode_attention", "scale_ignored"), ("decode_attention", "max_ignored")}
"""Wrong kernels with four nested loops that many cases do not show: compiling them takes less time."""


def wrong(backend: Backend) -> list[Any]:
    return [
        pytest.param(spec, kernel, id=f"{spec.name}-{kernel.name}")
        for spec in OPERATORS
        for kernel in spec.wrong_kernels
        if kernel.backend == backend
    ]


@pytest.mark.parametrize(("spec", "kernel"), wrong(Backend.NUMBA))
def test_wrong_numba_kernels_are_refused(spec: OperatorSpec, kernel: WrongKernel) -> None:
    opener = PlainOpener(kind=CompiledWorker if (spec.name, kernel.name) in SLOW_IN_PYTHON else PlainWorker)
    outcome, reason = judged(make_run(spec, Backend.NUMBA, spec.wrong_source(kernel), opener, small=True))
    assert outcome in kernel.outcomes, reason
    assert reason.text
    assert all(worker.closed for worker in opener.workers)


@pytest.mark.slow
@pytest.mark.sandbox
@pytest.mark.parametrize("backend", list(Backend))
@pytest.mark.parametrize("spec", OPERATORS, ids=lambda spec: spec.name)
def test_baselines_pass_in_the_sandbox(spec: OperatorSpec, backend: Backend) -> None:
    from harness.evaluation.sandbox import opener

    run = make_run(spec, backend, spec.baseline(backend), opener)
    assert judged(run) == (Outcome.PASSED, None)
    measured = [case for case in run.correctness.cases if case.name.startswith("measured ")]
    assert len(measured) == (len(run.workload.shapes[backend]) if backend is Backend.NUMBA else 0)
    layouts = [case for case in run.correctness.cases if case.name.startswith("as measured ")]
    assert len(layouts) == len(measured) * (2 if any(argument.strided for argument in spec.inputs) else 1)
    listed = len(run.correctness.cases) - len(measured) - len(layouts)
    assert listed == len(spec.cases if backend is Backend.NUMBA else spec.interpret_cases or spec.cases) > 12
    assert all(case.passed and (case.worst_ratio or 0) <= 1 for case in run.correctness.cases)
    assert all(case.baseline_error == case.error for case in run.correctness.cases)  # it is the baseline
    assert all(case.library_error is not None for case in run.correctness.cases if case.error is not None)


@pytest.mark.sandbox
@pytest.mark.parametrize(("spec", "kernel"), wrong(Backend.TRITON))
def test_wrong_triton_kernels_are_refused(spec: OperatorSpec, kernel: WrongKernel) -> None:
    from harness.evaluation.sandbox import opener

    outcome, reason = judged(make_run(spec, Backend.TRITON, spec.wrong_source(kernel), opener))
    assert outcome in kernel.outcomes, reason


@pytest.mark.sandbox
@pytest.mark.parametrize("name", ["store_past_end", "input_mutated"])
def test_compiled_numba_kernels_stay_in_their_memory(name: str) -> None:
    from harness.evaluation.sandbox import opener

    spec = registry.get("rms_norm")
    kernel = next(k for k in spec.wrong_kernels if k.backend == Backend.NUMBA and k.name == name)
    outcome, reason = judged(make_run(spec, Backend.NUMBA, spec.wrong_source(kernel), opener))
    assert outcome in kernel.outcomes, reason


def test_a_refusal_names_case_place_and_numbers() -> None:
    spec = registry.get("rms_norm")
    source = spec.baseline(Backend.NUMBA).replace("for col in range(cols):", "for col in range(cols - cols % 8):")
    outcome, reason = judged(make_run(spec, Backend.NUMBA, source, PlainOpener(), small=True))
    assert outcome is Outcome.INCORRECT_NUMERIC
    assert isinstance(reason, Reason)
    assert reason.code == "not_written"
    assert reason.case == "rows=3 cols=1021"
    assert reason.index == (0, 1016)
    assert "only in the last 5 of 1021 columns (from 1016)" in reason.text
