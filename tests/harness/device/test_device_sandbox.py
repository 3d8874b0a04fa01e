"""The whole pipeline on a device with real sandboxes, recorder, derivation and compiler; the device is not real."""

from __future__ import annotations

import argparse
import os
import struct
from pathlib import Path
from typing import Any

import pytest

from harness.backends.triton.device import stages
from harness.backends.triton.launcher import process
from harness.backends.triton.native.parity import ParityResult
from harness.cli import evaluate as command
from harness.domain.codec import check_schema, to_document
from harness.domain.digest import digest_source
from harness.domain.goal import Goal
from harness.domain.plan import LaunchPlan
from harness.domain.request import EvaluationRequest, OperatorRef, SourceRef
from harness.domain.vocabulary import Backend, Outcome, Purpose, Stage
from harness.evaluation.pipeline import evaluate
from harness.hardware import exclusive, gpu
from harness.operators import registry
from tests.harness.device.fakes import FakeDevice

pytestmark = pytest.mark.sandbox

NORM = registry.get("rms_norm")
BASELINE = NORM.baseline(Backend.TRITON)


class NormDevice(FakeDevice):
    """Computes rms_norm for plans recorded from real source: eps is their only float."""

    def attributes_of(self, plan: LaunchPlan) -> dict[str, float]:
        """Unpack eps from the launch's scalars."""
        launch = next(step["launch"] for step in plan.steps if "launch" in step)
        (packed,) = [value["hex"] for value in launch["args"] if value.get("scalar") == "fp32"]
        return {"eps": struct.unpack("<f", bytes.fromhex(packed))[0]}


@pytest.fixture
def devices(monkeypatch: pytest.MonkeyPatch) -> list[FakeDevice]:
    """This host has an H200, as far as the evaluator can tell; the launchers that were started."""
    started: list[FakeDevice] = []

    def open_device(index: int = 0, *, sanitizer: str | None = None) -> Any:
        started.append(NormDevice(NORM))
        return started[-1]

    monkeypatch.setattr(process, "open_device", open_device)
    monkeypatch.setattr(stages, "parity", lambda *_, **__: ParityResult(True, (), 41.5, 0.7, ("own uid",)))
    monkeypatch.setattr(gpu, "present", lambda name: name == "nvidia-h200")
    monkeypatch.setattr(gpu, "gpu_name", lambda: "nvidia-h200")
    return started


def request_of(source: str, purpose: Purpose = Purpose.PROMOTION) -> EvaluationRequest:
    return EvaluationRequest(
        job="j", nonce=os.urandom(4).hex(), purpose=purpose, operator=OperatorRef(NORM.name, NORM.version),
        backend=Backend.TRITON, hardware="nvidia-h200", workload="llm",
        goal=Goal(operator=NORM.name, backend=Backend.TRITON, hardware="nvidia-h200", workload="llm"),
        candidate=SourceRef(digest_source(source), source),
    )


@pytest.mark.slow
def test_the_baseline_is_judged_on_the_device_up_to_the_probes(devices: list[FakeDevice]) -> None:
    verdict = evaluate(request_of(BASELINE), until=Stage.PROBES)
    assert (verdict.outcome, verdict.stage) == (Outcome.PASSED, Stage.PROBES), verdict.reasons
    assert (verdict.hardware, verdict.target) == ("nvidia-h200", "nvidia-h200")
    assert verdict.environment.class_.startswith("nvidia-h200/")
    check_schema(to_document(verdict), "verdict")
    measured = [case.name for case in verdict.correctness.cases if case.name.startswith("measured")]
    assert measured == ["measured 32x8192", "measured 4096x4096", "measured 8192x8192"]
    assert 0 < verdict.environment.clocks["device_held_s"] < sum(verdict.stages.values())
    assert [note.code for note in verdict.notes] == ["sanitizer_absent"]
    assert verdict.environment.clocks["native"] == {
        "shape": "32x8192", "host_us": 41.5, "first_call_s": 0.7, "walls": ["own uid"]}
    assert devices and all(device.closed for device in devices)


def test_an_evaluation_that_stops_between_stages_gives_the_device_back(devices: list[FakeDevice]) -> None:
    verdict = evaluate(request_of(BASELINE, Purpose.ROUND), until=Stage.SMOKE)
    assert (verdict.outcome, verdict.stage) == (Outcome.PASSED, Stage.SMOKE)
    assert len(devices) == 1 and devices[0].closed
    with exclusive.device("nvidia-h200", 0.0):
        pass


def test_the_command_takes_the_gpu_of_this_host(devices: list[FakeDevice]) -> None:
    assert command._hardware(None, Backend.TRITON) == "nvidia-h200"
    assert devices == []


def test_the_command_asks_for_the_sanitizer_tier(devices: list[FakeDevice], tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    file.write_text(BASELINE)
    parser = argparse.ArgumentParser()
    command.configure(parser)
    words = ["--operator", NORM.name, "--backend", "triton", str(file)]
    plain, asked = (command._request_of(parser.parse_args([*words, *more])) for more in ([], ["--sanitize"]))
    assert (plain.sanitize, asked.sanitize) == (False, True)
    assert plain.hardware == plain.goal.hardware == "nvidia-h200"
    assert devices == []
