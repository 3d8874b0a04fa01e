"""The stages plan, resources and arithmetic on whole runs, the plan command, and request files for a GPU host."""

from __future__ import annotations

import dataclasses
import json
import time

import pytest

from harness import cli
from harness.backends.triton import stages
from harness.backends.triton.export import export_request
from harness.domain.codec import check_schema, from_document, to_document
from harness.domain.digest import digest_document, digest_source
from harness.domain.goal import Goal, Limits
from harness.domain.request import EvaluationRequest, OperatorRef, SourceRef
from harness.domain.vocabulary import Backend, Outcome, Purpose
from harness.evaluation import sandbox
from harness.evaluation.arithmetic import arithmetic
from harness.evaluation.ports import CandidateFault
from harness.evaluation.run import Refused, Run
from harness.operators import registry
from tests.harness import escape

pytestmark = pytest.mark.sandbox


def make_run(operator: str, source: str | None = None, limits: Limits | None = None) -> Run:
    spec = registry.get(operator)
    source = spec.baseline(Backend.TRITON) if source is None else source
    goal = Goal(
        operator=operator, backend=Backend.TRITON, hardware="nvidia-h200", workload="llm", limits=limits or Limits()
    )
    request = EvaluationRequest(
        job="j",
        nonce="n",
        purpose=Purpose.ROUND,
        operator=OperatorRef(operator, spec.version),
        backend=Backend.TRITON,
        hardware="interpreter",
        workload="llm",
        goal=goal,
        candidate=SourceRef(digest_source(source), source),
    )
    return Run(
        request=request,
        spec=spec,
        workload=spec.workloads["llm"],
        open_workers=sandbox.opener,
        progress=lambda *_: None,
        target="nvidia-h200",
    )


SCRATCH = {"topk": 8192 * 64 * 8}
"""Bytes of scratch that a baseline takes for its largest shape: a packed value and place for each of the k."""


@pytest.mark.parametrize("operator", registry.NAMES)
def test_baselines_have_plans_and_resources_for_every_shape(operator):
    run = make_run(operator)
    arithmetic(run)
    stages.plan(run)
    stages.resources(run)
    assert len(run.plans) == len(run.compiled) == min(4, len(run.workload.shapes[Backend.TRITON]))
    for recorded, compiled in zip(run.plans, run.compiled, strict=True):
        assert compiled.plan == digest_document(to_document(recorded))
        assert all(0 < launch.registers <= 255 for launch in compiled.launches)
    assert run.resources.scratch_bytes == SCRATCH.get(operator, 0)
    assert run.resources.peak_bytes > 0
    assert 0 < run.resources.occupancy <= 1
    assert run.resources.launches == tuple(launch for plan in run.compiled for launch in plan.launches)


def refused(run: Run) -> Refused:
    with pytest.raises(Refused) as caught:
        stages.plan(run)
        stages.resources(run)
    return caught.value


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        (Limits(registers=16), "registers_over_limit"),
        (Limits(shared_bytes=8), "shared_over_limit"),
    ],
)
def test_goal_limits_are_held_against_the_launches(limits, code):
    answer = refused(make_run("rms_norm", limits=limits))
    assert answer.outcome is Outcome.OVER_LIMIT
    assert [reason.code for reason in answer.reasons] == [code]


NORM = registry.get("rms_norm").baseline(Backend.TRITON)


def test_scratch_over_the_goal_s_ratio():
    source = NORM.replace("import triton\n", "import torch\nimport triton\n", 1).replace(
        "    rows, cols = x.shape\n",
        "    rows, cols = x.shape\n    torch.empty((6 * rows, cols), dtype=x.dtype, device=x.device)\n",
        1,
    )
    answer = refused(make_run("rms_norm", source))
    assert answer.outcome is Outcome.OVER_LIMIT
    assert answer.reasons[0].code == "scratch_over_limit"
    assert "3.00 times" in answer.reasons[0].text


@pytest.mark.parametrize(
    ("change", "outcome", "code"),
    [
        (
            ("    rows, cols = x.shape\n", "    rows, cols = x.shape\n    scale = x[0, 0].item()\n"),
            Outcome.POLICY_VIOLATION,
            "host_read",
        ),
        (
            ("    row = tl.program_id(0)", "    tl.device_print('row', tl.program_id(0))\n    row = tl.program_id(0)"),
            Outcome.POLICY_VIOLATION,
            "ir_refused",
        ),
        (
            (
                "    rows, cols = x.shape\n",
                "    rows, cols = x.shape\n    x.as_strided((rows + 1, cols), x.stride())\n",
            ),
            Outcome.OUT_OF_BOUNDS,
            "view_out_of_bounds",
        ),
    ],
)
def test_refusals_become_outcomes(change, outcome, code):
    assert change[0] in NORM
    answer = refused(make_run("rms_norm", NORM.replace(*change, 1)))
    assert (answer.outcome, answer.reasons[0].code) == (outcome, code)


@pytest.mark.parametrize(
    ("source", "outcome", "word"),
    [
        (NORM.replace("tl.sum(squares, 0)", "tl.summ(squares, 0)"), Outcome.COMPILE_ERROR, "summ"),
        (NORM.replace("    rows, cols = x.shape\n", "    rows, cols = x.shap\n"), Outcome.RUNTIME_ERROR, "shap"),
        ("import nothing_of_this_name\n" + NORM, Outcome.RUNTIME_ERROR, "nothing_of_this_name"),
        (NORM.replace("def run(", "def walk("), Outcome.POLICY_VIOLATION, "run"),
        (escape.PYTHON + NORM.replace("    rows, cols = x.shape\n", "    import os\n    os._exit(0)\n"),
         Outcome.RUNTIME_ERROR, "exit"),
    ],
)
def test_faults_of_the_candidate_have_an_outcome_and_a_line(source, outcome, word):
    with pytest.raises(CandidateFault) as caught:
        stages.plan(make_run("rms_norm", source))
    assert caught.value.fault.outcome is outcome
    assert word in caught.value.fault.text
    if outcome is Outcome.COMPILE_ERROR:
        assert caught.value.fault.line == source[: source.index(word)].count("\n") + 1


def test_an_endless_loop_on_the_host_is_stopped():
    run = make_run("rms_norm", NORM.replace("    rows, cols = x.shape\n", "    while True:\n        pass\n"))
    run.deadline = time.monotonic() + 2.0
    with pytest.raises(CandidateFault) as caught:
        stages.plan(run)
    assert caught.value.fault.outcome is Outcome.TIMEOUT


def test_a_recorder_that_is_replaced_is_seen():
    forge = (
        "    import harness.backends.triton.plan_child as child\n"
        "    child.PlanChild.answer = lambda self, request: {'plan': {'version': 1}}\n"
    )
    answer = refused(
        make_run("rms_norm", escape.PYTHON + NORM.replace("    rows, cols = x.shape\n",
                                                          forge + "    rows, cols = x.shape\n"))
    )
    assert (answer.outcome, answer.reasons[0].code) == (Outcome.REWARD_HACK, "plan_forged")


def test_requests_for_a_gpu_host_are_complete(tmp_path):
    run = make_run("rms_norm")
    stages.plan(run)
    paths = export_request(run.request, run.plans, tmp_path)
    documents = [json.loads(path.read_text()) for path in paths]
    check_schema(documents[0], "request")
    request = from_document(documents[0], EvaluationRequest)
    assert (request.hardware, request.goal.hardware) == ("nvidia-h200", "nvidia-h200")
    assert request.candidate == run.request.candidate
    for document, plan in zip(documents[1:], run.plans, strict=True):
        check_schema(document, "plan")
        assert digest_document(document) == digest_document(to_document(plan))
    assert dataclasses.replace(request, hardware="interpreter", goal=run.request.goal) == run.request


def plan_command(*words: str) -> int:
    return cli.main(["plan", *words])


def test_the_command_prints_registers_and_shared_memory(tmp_path, capsys):
    file = tmp_path / "kernel.py"
    file.write_text(NORM)
    assert plan_command("--operator", "rms_norm", "--hardware", "nvidia-h200", str(file), "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["outcome"] == "passed"
    launch = document["compiled"][0]["launches"][0]
    assert (launch["function"], launch["spill_bytes"]) == ("_rms_norm", 0)
    assert launch["registers"] > 0
    assert plan_command("--operator", "rms_norm", str(file), "--export", str(tmp_path / "out")) == 0
    printed = capsys.readouterr().out
    assert "_rms_norm" in printed
    assert "not timed" in printed
    assert list((tmp_path / "out").glob("*.request.json"))


def test_the_command_s_exit_codes(tmp_path, capsys):
    file = tmp_path / "kernel.py"
    file.write_text(NORM.replace("    rows, cols = x.shape\n", "    rows, cols = x.shape\n    x.sum().item()\n"))
    assert plan_command("--operator", "rms_norm", str(file)) == 1
    assert "library_compute" in capsys.readouterr().out
    assert plan_command("--operator", "rms_norm", str(tmp_path / "missing.py")) == 2
    assert plan_command("--operator", "norms", str(file)) == 2
    assert plan_command("--operator", "rms_norm", "--hardware", "nvidia-b1", str(file)) == 2
    assert plan_command("--operator", "rms_norm", "--workload", "none", str(file)) == 2
