"""The judge's stages at their edges: limits, overrides, replayed answers, failing workers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from harness.domain.goal import Limits, ToleranceOverride
from harness.domain.vocabulary import Backend, Outcome, Stage
from harness.evaluation.judge.correctness import correctness
from harness.evaluation.ports import CallReport
from harness.evaluation.run import Refused
from harness.operators import registry
from harness.operators.base import ShapePoint
from harness.operators.implementation import load_implementation
from tests.harness.judge.evaluations import judged, make_run
from tests.harness.judge.plain_worker import PlainOpener, PlainWorker

SPEC = registry.get("rms_norm")
BASELINE = SPEC.baseline(Backend.NUMBA)


def test_scratch_over_the_goals_limit_is_refused_with_the_sum() -> None:
    class Greedy(PlainWorker):
        def call(self, lent: Any, attributes: Any) -> CallReport:
            return replace(super().call(lent, attributes), scratch_bytes=100_000)

    class Opener(PlainOpener):
        def open(self, **_: Any) -> PlainWorker:
            self.workers.append(Greedy())
            return self.workers[-1]

    run = make_run(SPEC, Backend.NUMBA, BASELINE, Opener(), Limits(scratch_ratio=2.0))
    tiny = ShapePoint("4x64", {"rows": 4, "cols": 64}, 1.0)
    run.workload = replace(run.workload, shapes={Backend.NUMBA: (tiny,)})
    outcome, reason = judged(run)
    assert outcome is Outcome.OVER_LIMIT
    assert "100,000 bytes of scratch for 2,304 bytes of arguments" in reason.text
    assert run.resources.scratch_bytes == 100_000


def test_a_goals_looser_tolerance_lets_a_coarser_kernel_pass() -> None:
    coarse = BASELINE.replace("* scale * weight", "* (scale * np.float32(1.0003)) * weight")
    assert coarse != BASELINE
    strict = make_run(SPEC, Backend.NUMBA, coarse, PlainOpener(), small=True)
    assert judged(strict)[0] is Outcome.INCORRECT_NUMERIC
    loose = Limits(tolerance=ToleranceOverride(relative=1e-3, reason="test"))
    run = make_run(SPEC, Backend.NUMBA, coarse, PlainOpener(), loose, small=True)
    assert judged(run) == (Outcome.PASSED, None)  # exact problems and bits would be stricter than the goal
    assert {case.bound.binding for case in run.correctness.cases} == {"override"}


def test_a_failing_reference_is_charged_to_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    module = load_implementation(SPEC)
    monkeypatch.setattr(module, "honest", lambda inputs, attributes: {"out": torch.zeros_like(inputs["x"])})
    opener = PlainOpener()
    outcome, reason = judged(make_run(SPEC, Backend.NUMBA, BASELINE, opener, small=True))
    assert outcome is Outcome.INVALID_REFERENCE
    assert reason.code == "invalid_reference"
    assert all(worker.closed for worker in opener.workers)


def test_a_failed_case_is_recorded_with_its_errors_before_the_refusal() -> None:
    wrong = next(k for k in SPEC.wrong_kernels if k.backend == Backend.NUMBA and k.name == "eps_ignored")
    run = make_run(SPEC, Backend.NUMBA, SPEC.wrong_source(wrong), PlainOpener(), small=True)
    run.stage = Stage.CORRECTNESS
    with pytest.raises(Refused) as refused:
        correctness(run)
    last = run.correctness.cases[-1]
    assert not last.passed
    assert last.name == refused.value.reasons[0].case
    assert last.baseline_error is not None
    assert last.library_error is not None
    assert run.judging is None


def test_an_answer_remembered_by_address_is_caught() -> None:
    remembering = BASELINE.replace("PARAMS =", "_SEEN = {}\nPARAMS =").replace(
        "    partial = np.empty",
        "    key = x.shape\n    if _SEEN.get(key, 0) > 6:\n        out[:] = _SEEN['out', key]\n        return\n"
        "    _SEEN[key] = _SEEN.get(key, 0) + 1\n    partial = np.empty",
    )
    remembering += "    _SEEN['out', key] = out.copy()\n"
    outcome, reason = judged(make_run(SPEC, Backend.NUMBA, remembering, PlainOpener(), small=True))
    assert outcome in (Outcome.INCORRECT_NUMERIC, Outcome.INCORRECT_NONDETERMINISTIC), reason


def test_smoke_reports_the_bounds_checked_process_first() -> None:
    past = next(k for k in SPEC.wrong_kernels if k.backend == Backend.NUMBA and k.name == "store_past_end")
    outcome, fault = judged(make_run(SPEC, Backend.NUMBA, SPEC.wrong_source(past), PlainOpener(), small=True))
    assert (outcome, fault.code) == (Outcome.OUT_OF_BOUNDS, "index_error")
