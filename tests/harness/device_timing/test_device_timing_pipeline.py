"""A whole evaluation on a modelled device, from the request to the verdict's document and its samples."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from harness.backends.triton.launcher import process
from harness.domain.codec import check_schema, to_document
from harness.domain.digest import canonical_json, digest_bytes, digest_source
from harness.domain.goal import Goal
from harness.domain.profile import ProfileSource
from harness.domain.request import EvaluationRequest, OperatorRef, Opponent, SourceRef
from harness.domain.vocabulary import Backend, Comparison, Evidence, Outcome, Purpose, Role, Stage
from harness.evaluation import pipeline
from harness.evaluation.profile import tool
from harness.evaluation.timing.comparison import compare
from harness.hardware import gpu
from harness.operators import registry
from harness.operators.base import ShapePoint
from tests.harness.device.fakes import FakeDevice
from tests.harness.device_timing.device_model import Model, ModelDevice

SPEC = registry.get("softmax")
BASELINE = SPEC.baseline(Backend.TRITON)
POINTS = (ShapePoint("40x384", {"rows": 40, "cols": 384}, 0.7), ShapePoint("9x1000", {"rows": 9, "cols": 1000}, 0.3))


class Judged(FakeDevice):
    """Calls compute what PyTorch computes."""

    def attributes_of(self, plan):
        """Softmax has none."""
        return {}


class Whole(ModelDevice):
    """Calls as one fake has them, rounds as the other."""

    def __init__(self, model):
        super().__init__(SPEC, model, name_of=lambda plan: str(plan.steps[0]["launch"]["options"]["num_warps"]))
        self.judged = Judged(SPEC)

    def load(self, plan, binaries):
        """Both count alike."""
        self.judged.load(plan, binaries)
        return super().load(plan, binaries)

    def call(self, handle, lent, *, drop=None, timeout_s=10.0):
        """See ``Judged``."""
        return self.judged.call(handle, lent, drop=drop, timeout_s=timeout_s)


@pytest.mark.sandbox
@pytest.mark.slow
def test_a_faster_kernel_gets_a_whole_verdict(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNELOPT_VAR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    workload = replace(SPEC.workloads["llm"], shapes={Backend.TRITON: POINTS})
    spec = replace(SPEC, workloads={"llm": workload})
    monkeypatch.setattr(registry, "get", lambda name: spec)
    monkeypatch.setattr(tool, "find", lambda: None)
    monkeypatch.setattr(gpu, "present", lambda name: name == "nvidia-h200")
    device = Whole(Model({"2": 80.0, "4": 100.0}))
    monkeypatch.setattr(process, "open_device", lambda index=0, *, sanitizer=None: device)
    source = BASELINE.replace('"num_warps": 4', '"num_warps": 2')
    assert source != BASELINE
    request = EvaluationRequest(
        job="j", nonce=f"{random.getrandbits(32):08x}", purpose=Purpose.ROUND,
        operator=OperatorRef(SPEC.name, SPEC.version), backend=Backend.TRITON, hardware="nvidia-h200", workload="llm",
        goal=Goal(operator=SPEC.name, backend=Backend.TRITON, hardware="nvidia-h200", workload="llm"),
        candidate=SourceRef(digest_source(source), source),
        against=(Opponent(Role.BASELINE, digest_source(BASELINE), BASELINE),), profile=True,
    )
    found = pipeline.evaluate_fully(request)
    verdict = found.verdict
    assert verdict.outcome is Outcome.PASSED, verdict.reasons
    check_schema(to_document(verdict), "verdict")
    check_schema(to_document(found.samples), "samples")
    assert verdict.hardware == "nvidia-h200"
    assert (verdict.comparison, verdict.compared_with) == (Comparison.FASTER, "baseline")
    assert verdict.timing.evidence is Evidence.BOUNDED and verdict.timing.overall["baseline"].ratio > 1.2
    assert verdict.environment.class_.startswith("nvidia-h200/driver-")
    assert verdict.stage is Stage.PROFILE and verdict.profile.source is ProfileSource.CLOCK
    assert "not installed" in verdict.profile.why
    assert [one.shape for one in verdict.profile.shapes] == ["40x384", "9x1000"]
    assert {"benchmark", "recheck", "profile"} <= set(verdict.environment.clocks["device_held_by_stage_s"])
    assert verdict.samples == "blob:" + digest_bytes(canonical_json(to_document(found.samples)))
    assert compare(found.samples, "baseline").overall == verdict.timing.overall["baseline"]
