"""The numba backend end to end in its sandbox: plan, screening and recheck on a small shape."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.backends.numba.stages import compile_request, plan, smallest_case
from harness.domain.codec import check_schema, from_document, to_document
from harness.domain.digest import digest_source
from harness.domain.goal import Goal
from harness.domain.request import EvaluationRequest, OperatorRef, Opponent, SourceRef
from harness.domain.samples import Samples
from harness.domain.vocabulary import Backend, Comparison, Outcome, Purpose, Role
from harness.evaluation import sandbox
from harness.evaluation.ports import CandidateFault
from harness.evaluation.run import Refused, Run
from harness.evaluation.timing import stages
from harness.hardware.detect import hardware_name
from harness.operators import registry
from harness.operators.base import ShapePoint

SPEC = registry.get("rms_norm")
BASELINE = SPEC.baseline(Backend.NUMBA)
POINT = ShapePoint("64x512", {"rows": 64, "cols": 512}, 1.0, {"eps": 1e-6})


@pytest.fixture(autouse=True)
def few_slots(monkeypatch, tmp_path_factory):
    """Rings and roofs of a size for tests, and no repeats on a busy machine; the protocol stays the same."""
    monkeypatch.setattr(stages, "REPEATS", 0)
    monkeypatch.setattr("harness.evaluation.timing.rings.MOST_SLOTS", 6)
    monkeypatch.setenv("KERNELOPT_VAR", str(tmp_path_factory.getbasetemp() / "var"))


def run_of(source: str, *, against: str = BASELINE) -> Run:
    workload = replace(SPEC.workloads["llm"], shapes={Backend.NUMBA: (POINT,)})
    goal = Goal(operator=SPEC.name, backend=Backend.NUMBA, hardware=hardware_name(), workload="llm")
    opponents = (Opponent(Role.BASELINE, digest_source(against), against),)
    request = EvaluationRequest(
        job="j", nonce="n", purpose=Purpose.PROBE, operator=OperatorRef(SPEC.name, SPEC.version),
        backend=Backend.NUMBA, hardware=hardware_name(), workload="llm", goal=goal,
        candidate=SourceRef(digest_source(source), source), against=opponents,
    )
    return Run(request=request, spec=SPEC, workload=workload, open_workers=sandbox.opener, progress=lambda *_: None)


def test_the_smallest_dense_smoke_case_compiles():
    case = smallest_case(SPEC)
    request = compile_request(SPEC, case)
    assert case.layout == "dense"
    assert [item["kind"] for item in request["arrays"]] == ["input", "input", "output"]
    assert set(request["attributes"]) == {"eps"}


@pytest.mark.sandbox
def test_plan_reports_import_and_first_call():
    run = run_of(BASELINE)
    plan(run)
    assert run.clocks["import_s"] > 0 and run.clocks["first_call_s"] > 0
    assert run.seed is None


@pytest.mark.sandbox
def test_plan_names_the_line_that_does_not_compile():
    broken = BASELINE.replace("rows, cols = x.shape", "rows, cols = x.shap")
    with pytest.raises(CandidateFault) as caught:
        plan(run_of(broken))
    line = 1 + next(at for at, text in enumerate(broken.splitlines()) if text.endswith("x.shap"))
    assert (caught.value.fault.outcome, caught.value.fault.line) == (Outcome.COMPILE_ERROR, line)


@pytest.mark.slow
@pytest.mark.sandbox
def test_recheck_fills_timing_samples_and_comparison():
    run = run_of(BASELINE)
    stages.benchmark(run)
    assert run.timing is None
    stages.recheck(run)
    assert run.timing is not None and run.samples is not None
    (shape,) = run.timing.shapes
    assert run.timing.rounds >= stages.ROUNDS
    assert 0 < shape.p10 <= shape.median_us <= shape.p90
    assert set(shape.versus) == set(run.timing.overall) == {"baseline"}
    assert min(shape.cold_us, shape.hot_us, shape.first_call_us, shape.gbps, shape.roof_share) > 0
    assert run.comparison in (Comparison.CANNOT_TELL, Comparison.FASTER, Comparison.SLOWER)
    assert run.score is not None
    document = to_document(run.samples)
    check_schema(document, "samples")
    assert from_document(document, Samples) == run.samples


LAZY = """
_calls = [0]

def run(x, weight, out, *, eps):
    _calls[0] += 1
    if _calls[0] > 3:
        out[:] = 0.5
        return
""" + "".join(f"    {line}\n" for line in (
    "for row in range(x.shape[0]):",
    "    scale = (x[row] * x[row]).mean()",
    "    out[row] = x[row] / (scale + eps) ** 0.5 * weight",
))


@pytest.mark.sandbox
def test_work_that_stops_once_it_is_timed_is_a_reward_hack():
    with pytest.raises(Refused) as caught:
        stages.benchmark(run_of(LAZY))
    assert caught.value.outcome is Outcome.REWARD_HACK
    assert caught.value.reasons[0].code == "timed_output_wrong"


REMEMBERS = """
_seen = set()

def run(x, weight, out, *, eps):
    key = x.tobytes()
    if key in _seen:
        out[:] = 0.5
        return
    _seen.add(key)
""" + "".join(f"    {line}\n" for line in (
    "for row in range(x.shape[0]):",
    "    scale = (x[row] * x[row]).mean()",
    "    out[row] = x[row] / (scale + eps) ** 0.5 * weight",
))
"""Wrong on contents that it has met before, so that it passes only where no contents come twice."""


@pytest.mark.sandbox
def test_no_timed_contents_come_twice_so_that_nothing_remembered_is_of_use():
    run = run_of(REMEMBERS)
    stages.recheck(run)
    assert run.timing is not None


SKIPS = LAZY.replace("_calls[0] > 3", "_calls[0] > 6 and _calls[0] % 9 == 0")


@pytest.mark.sandbox
def test_a_kernel_that_now_and_then_skips_a_timed_call_is_a_reward_hack():
    with pytest.raises(Refused) as caught:
        stages.recheck(run_of(SKIPS))
    assert caught.value.reasons[0].code == "timed_output_wrong"


@pytest.mark.sandbox
def test_a_failing_opponent_is_not_charged_to_the_candidate():
    with pytest.raises(Exception, match="baseline") as caught:
        stages.benchmark(run_of(BASELINE, against="def run(*arrays, **attributes):\n    raise ValueError('old')\n"))
    assert not isinstance(caught.value, CandidateFault | Refused)


def test_equal_opponents_share_one_process():
    run = run_of(BASELINE)
    twice = replace(run.request, against=(*run.request.against, replace(run.request.against[0], role=Role.INCUMBENT)))
    line_up = stages.line_up_of(replace(run, request=twice))
    assert set(line_up.sources) == {"candidate", "baseline"}
    assert line_up.roles == {"baseline": "baseline", "incumbent": "baseline"}
    assert line_up.control == "baseline"
