"""Evaluations recorded on a GPU, replayed without one: documents, digests, comparisons, plans, binaries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.backends.triton.check import read_plan
from harness.backends.triton.compiler.binaries import binaries_of
from harness.backends.triton.compiler.process import compiler_for
from harness.backends.triton.launcher.validate import check_plan
from harness.backends.triton.planning import argument_documents, record_plans
from harness.backends.triton.targets import find_target
from harness.domain.codec import check_schema, from_document, to_document
from harness.domain.digest import canonical_json, digest_bytes, digest_source
from harness.domain.plan import LaunchPlan
from harness.domain.request import EvaluationRequest
from harness.domain.samples import Samples
from harness.domain.verdict import Verdict
from harness.domain.vocabulary import Backend, Comparison, Evidence, Outcome
from harness.evaluation import sandbox
from harness.evaluation.static.check import findings
from harness.evaluation.static.findings import Severity
from harness.evaluation.timing.comparison import compare, noise_of, score
from harness.operators import registry
from harness.operators.base import OperatorSpec

FOLDER = Path(__file__).parents[1] / "fixtures"
RUNS = sorted(path.parent for path in FOLDER.glob("nvidia-*/*/verdict.json"))
TIMED = [run for run in RUNS if (run / "samples.json").exists()]
PLANNED = [run for run in RUNS if (run / "plan-0.json").exists()]


def document(run: Path, name: str) -> Any:
    return json.loads((run / f"{name}.json").read_text("utf-8"))


def name_of(run: Path) -> str:
    return run.name


def request_of(run: Path) -> EvaluationRequest:
    return from_document(document(run, "request"), EvaluationRequest)


def verdict_of(run: Path) -> Verdict:
    return from_document(document(run, "verdict"), Verdict)


def plans_of(run: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text("utf-8")) for path in sorted(run.glob("plan-*.json"))]


def dims_of(spec: OperatorSpec, plan: dict[str, Any]) -> dict[str, int]:
    """The sizes that a plan was recorded for: a workload may have other shapes by now."""
    shapes = [buffer["shape"] for buffer in plan["buffers"] if buffer["kind"] in ("input", "output")]
    return {dim: size for argument, shape in zip(spec.arguments, shapes, strict=True)
            for dim, size in zip(argument.dims, shape, strict=True)}


def test_there_are_recorded_runs_of_all_kinds() -> None:
    outcomes = {verdict_of(run).outcome for run in RUNS}
    assert Outcome.PASSED in outcomes
    assert len(outcomes) >= 3
    assert {request_of(run).operator.name for run in TIMED} >= {"rms_norm", "softmax", "decode_attention"}


@pytest.mark.parametrize("run", RUNS, ids=name_of)
def test_documents_follow_their_schemas_and_belong_together(run: Path) -> None:
    for name in ("request", "verdict"):
        check_schema(document(run, name), name)
    request, verdict = request_of(run), verdict_of(run)
    assert digest_source(request.candidate.source) == request.candidate.digest == verdict.kernel
    assert verdict.hardware == request.hardware == run.parent.name
    assert verdict.environment.class_.startswith(f"{verdict.hardware}/driver-")
    assert verdict.evaluator.isolation.level >= 2
    assert (verdict.timing is None) == (run not in TIMED)


@pytest.mark.parametrize("run", TIMED, ids=name_of)
def test_the_comparison_is_recomputed_from_the_samples(run: Path) -> None:
    check_schema(document(run, "samples"), "samples")
    samples, verdict = from_document(document(run, "samples"), Samples), verdict_of(run)
    assert verdict.samples == "blob:" + digest_bytes(canonical_json(to_document(samples)))
    assert verdict.timing is not None
    assert verdict.timing.evidence is Evidence.BOUNDED
    for role, told in verdict.timing.overall.items():
        again = compare(samples, role)
        assert (told.ratio, told.low, told.high) == pytest.approx(
            (again.overall.ratio, again.overall.low, again.overall.high))
    role = str(verdict.compared_with)
    assert verdict.comparison is compare(samples, role).comparison
    assert verdict.regressions == compare(samples, role).regressions
    assert verdict.timing.noise == pytest.approx(noise_of(samples))
    assert verdict.score == pytest.approx(score(samples, request_of(run).goal.objective.weights))


@pytest.mark.parametrize("run", [run for run in RUNS if run not in TIMED], ids=name_of)
def test_a_refused_kernel_has_reasons_and_no_time(run: Path) -> None:
    verdict = verdict_of(run)
    assert verdict.outcome is not Outcome.PASSED
    assert verdict.comparison is Comparison.NONE
    assert verdict.reasons[0].text


@pytest.mark.parametrize("run", RUNS, ids=name_of)
def test_the_static_stage_still_says_the_same(run: Path) -> None:
    request = request_of(run)
    spec = registry.get(request.operator.name)
    found = findings(request.candidate.source, spec, Backend.TRITON, request.goal.prohibited)
    assert not [finding for finding in found if finding.severity is Severity.BLOCK]


@pytest.mark.parametrize("run", PLANNED, ids=name_of)
def test_plans_are_accepted_and_a_forged_one_is_not(run: Path) -> None:
    request = request_of(run)
    spec = registry.get(request.operator.name)
    dtype = spec.workloads[request.workload].dtypes[Backend.TRITON]
    for recorded in plans_of(run):
        arguments = argument_documents(spec.arguments, dims_of(spec, recorded), dtype)
        plan = read_plan(recorded, arguments, find_target(request.hardware).label)
        launches = [step["launch"] for step in plan.steps if "launch" in step]
        binaries = [{"num_warps": launch["options"]["num_warps"], "num_ctas": launch["num_ctas"]}
                    for launch in launches]
        check_plan(plan, len(spec.arguments), binaries)


@pytest.mark.sandbox
@pytest.mark.parametrize("run", PLANNED[:3], ids=name_of)
def test_recording_again_here_gives_the_same_launches(run: Path) -> None:
    """Python, torch and the machine do not matter; the compiler's version only shows in the intermediate code."""
    request = request_of(run)
    spec, target = registry.get(request.operator.name), find_target(request.hardware)
    workload = spec.workloads[request.workload]
    sizes = [dims_of(spec, recorded) for recorded in plans_of(run)]
    points = [point for dims in sizes for point in workload.shapes[Backend.TRITON] if point.dims == dims]
    worker: Any = sandbox.opener("triton-plan").open(deadline_s=60.0, options={"target": target.name})
    try:
        again = record_plans(worker, request.candidate.source, spec.arguments, points,
                             workload.dtypes[Backend.TRITON], target,
                             {attribute.name: attribute.default for attribute in spec.attributes})
    finally:
        worker.close()
    timed = [recorded for recorded, dims in zip(plans_of(run), sizes, strict=True)
             if any(point.dims == dims for point in points)]
    assert timed, "no shape of this recording is measured any more: record it again"
    for recorded, plan in zip(timed, again, strict=True):
        assert _launches(recorded) == _launches(to_document(plan))


def _launches(plan: dict[str, Any]) -> list[dict[str, Any]]:
    """The steps without what belongs to the compiler: its intermediate code and its default options."""
    steps = []
    for step in plan["steps"]:
        if "launch" in step:
            launch = step["launch"]
            step = {name: launch[name] for name in ("function", "grid", "num_ctas", "args", "constants", "divisible")}
            step["num_warps"] = launch["options"]["num_warps"]
        steps.append(step)
    return steps


@pytest.mark.sandbox
@pytest.mark.parametrize("run", PLANNED[:1], ids=name_of)
def test_recorded_code_compiles_here_and_its_parameters_are_the_plan_s(run: Path) -> None:
    request = request_of(run)
    plan = from_document(plans_of(run)[0], LaunchPlan)
    (binaries,) = binaries_of([plan], compiler_for(find_target(request.hardware)))
    assert all(binary.cubin.startswith(b"\x7fELF") and binary.symbol for binary in binaries)
