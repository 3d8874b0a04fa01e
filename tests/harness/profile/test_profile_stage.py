"""The stage on a run that was timed on a modelled device: counters, their absence, and what it leaves behind."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from harness.backends.triton.launcher.binary import Binary
from harness.domain.codec import check_schema, from_document, schema, to_document
from harness.domain.plan import CompiledPlan, LaunchPlan, LaunchResources
from harness.domain.profile import Bottleneck, CounterProfile, ProfileSource
from harness.domain.verdict import Verdict
from harness.domain.vocabulary import Backend, Evidence, Stage
from harness.evaluation.profile import stage
from harness.evaluation.profile.table import read_table
from harness.evaluation.profile.tool import NoCounters, Report
from harness.evaluation.run import Run
from harness.evaluation.timing.sides import CANDIDATE
from harness.hardware import exclusive
from harness.operators import registry
from harness.operators.base import ShapePoint
from tests.harness.device.runs import device_run
from tests.harness.profile.reports import BUSY_MEMORY, report

SPEC = registry.get("softmax")
POINTS = (ShapePoint("9x100", {"rows": 9, "cols": 100}, 0.3), ShapePoint("40x384", {"rows": 40, "cols": 384}, 0.7))
ROW = LaunchResources("_kernel", (40, 1, 1), 8, 1, 64, 0, 0, 64, 0.5, None, "registers")


class Held:
    """A bench as the recheck leaves it; counts how often it was closed."""

    def __init__(self, shapes: dict[str, Any], kernels: dict[str, Any]) -> None:
        self.shapes, self.kernels, self.closed = shapes, kernels, 0

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Run:
    made, _, _ = device_run(monkeypatch, SPEC)
    monkeypatch.setattr(exclusive, "lock_path", lambda device: tmp_path / "lock")
    made.workload = replace(made.workload, shapes={Backend.TRITON: POINTS})
    plan = from_document(schema("plan")["examples"][0], LaunchPlan)
    lent = SimpleNamespace(name="x", kind="input", dtype="bfloat16", shape=(9, 100), strides=(100, 1), offset=512,
                           nbytes=4096, fd=7)
    shapes = {point.label: SimpleNamespace(label=point.label, point=point, lending=SimpleNamespace(lent=(lent,)))
              for point in POINTS}
    calls = {point.label: (plan, (Binary("_kernel", b"code", 8, 1, 64),)) for point in POINTS}
    made.compiled = [CompiledPlan("sha256:x", "cuda:90", "triton", (ROW,), 0.1) for _ in POINTS]
    made.bench = Held(shapes, {CANDIDATE: SimpleNamespace(calls=calls)})
    made.stage = Stage.PROFILE
    document = schema("verdict")["examples"][1]
    timing = from_document(document, Verdict).timing
    assert timing is not None
    made.timing = replace(timing, shapes=tuple(replace(timing.shapes[0], shape=point.label) for point in POINTS))
    return made


def counted(*functions: str) -> Report:
    return Report(read_table(report(*((name, BUSY_MEMORY) for name in functions))), "Nsight Compute 2025.3.1.0")


def test_counters_of_the_heaviest_shape_come_first(run: Run) -> None:
    asked: list[dict[str, Any]] = []
    held: list[bool] = []

    def profiler(request: dict[str, Any]) -> Report:
        asked.append(json.loads(json.dumps(request)))
        with pytest.raises(Exception, match="Another measurement held"), exclusive.device("nvidia-test", 0.0):
            pass
        held.append(True)
        return counted("_kernel", "_kernel")

    bench, before = run.bench, run.deadline
    stage.profile(run, profiler)
    found = run.profile
    assert found is not None and held
    assert (found.source, found.tool, found.why) == (ProfileSource.COUNTERS, "Nsight Compute 2025.3.1.0", None)
    assert [shape.shape for shape in found.shapes] == ["40x384", "9x100"]
    assert {shape.bound for shape in found.shapes} == {Bottleneck.MEMORY} and not run.notes
    assert run.timing is not None and run.timing.evidence is Evidence.PROFILED  # 68.4 us by both
    first = asked[0]["calls"][0]
    assert "irs" not in first["document"] and first["binaries"][0]["symbol"] == "_kernel"
    assert first["arrays"][0]["path"] == f"/proc/{os.getpid()}/fd/7"
    assert bench.closed == 1 and run.bench is None
    assert run.deadline >= before
    with exclusive.device("nvidia-test", 0.0):  # the device is free again
        pass


@pytest.mark.parametrize(("answer", "words"), [
    (NoCounters("absent", "Nsight Compute (ncu) is not installed on this host"), "not installed"),
    (OSError("no space left"), "no space left"),
    (counted("_kernel"), "fewer launches"),
    (counted("_kernel", "_other"), "'_other' where '_kernel' ran"),
])
def test_without_counters_the_clock_speaks_and_says_why(answer: Any, words: str, run: Run) -> None:
    def profiler(request: dict[str, Any]) -> Report:
        if isinstance(answer, Exception):
            raise answer
        return answer

    bench = run.bench
    stage.profile(run, profiler)
    found = run.profile
    assert found is not None and found.source is ProfileSource.CLOCK and found.tool is None
    assert words in str(found.why) and not str(found.why).endswith(".")
    assert [note.code for note in run.notes] == ["no_counters"] and words in run.notes[0].text
    assert run.timing is not None and run.timing.evidence is Evidence.BOUNDED
    assert found.shapes[0].us == 68.4 and found.shapes[0].launches[0].us is None
    text = "Bound by memory: 90% of the measured roof (3,925 GB/s). Occupancy: registers allow 50%."
    assert found.shapes[0].text == text
    assert bench.closed == 1


def test_far_from_the_roof_a_clock_cannot_tell_what_binds(run: Run) -> None:
    assert run.timing is not None
    run.timing = replace(run.timing, shapes=tuple(replace(one, roof_share=0.2) for one in run.timing.shapes))
    stage.profile(run, lambda request: (_ for _ in ()).throw(NoCounters("absent", "none")))
    assert run.profile is not None and run.profile.shapes[0].bound is Bottleneck.UNKNOWN
    assert "Not near a roof: 20%" in run.profile.shapes[0].text


def test_a_profile_fits_the_verdicts_schema(run: Run) -> None:
    stage.profile(run, lambda request: counted("_kernel", "_kernel"))
    document = schema("verdict")["examples"][1]
    verdict = replace(from_document(document, Verdict), profile=run.profile)
    made = to_document(verdict)
    check_schema(made, "verdict")
    assert from_document(made["profile"], CounterProfile) == run.profile
