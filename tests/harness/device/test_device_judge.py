"""The judge's stages on a (fake) device: honest kernels pass, every way to fail has its outcome, nothing stays held."""

from __future__ import annotations

import pytest
import torch

from harness.backends.triton.launcher.client import DeviceFault, PlanRefused
from harness.domain.errors import InfrastructureError
from harness.domain.vocabulary import Outcome
from harness.evaluation.ports import Fault
from harness.evaluation.run import Place
from harness.operators import registry
from harness.operators.implementation import Tensors, load_implementation
from tests.harness.device.fakes import FakeDevice, honest
from tests.harness.device.runs import device_run
from tests.harness.judge.evaluations import judged

NORM = registry.get("rms_norm")


@pytest.mark.parametrize("operator", registry.NAMES)
def test_an_honest_kernel_passes_every_case_and_the_measured_shape(
    operator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = registry.get(operator)
    run, host, planners = device_run(monkeypatch, spec)
    assert run.place is Place.DEVICE
    assert judged(run) == (Outcome.PASSED, None)
    names = [case.name for case in run.correctness.cases if not case.name.startswith("as measured")]
    assert names == [*(case.name for case in spec.cases), "measured small"]
    assert all(case.passed and case.baseline_error is not None for case in run.correctness.cases)
    assert run.notes == []
    assert all(device.closed for device in host.devices)
    assert all(planner.closed for planner in planners.opened)
    assert run.clocks["device_held_s"] > 0
    assert set(run.clocks["device_held_by_stage_s"]) == {"smoke", "correctness", "probes"}


def _unwritten(device: FakeDevice, inputs: Tensors, outputs: Tensors, drop: int | None) -> None:
    """A kernel that does nothing."""


def _halved(device: FakeDevice, inputs: Tensors, outputs: Tensors, drop: int | None) -> None:
    honest(device, inputs, outputs, drop)
    next(iter(outputs.values())).mul_(0.5)


def _one_row_of_many(device: FakeDevice, inputs: Tensors, outputs: Tensors, drop: int | None) -> None:
    """Right for small problems; of many rows one is left unwritten."""
    out = outputs["out"]
    kept = out[417].clone() if len(out) == 3000 else None
    honest(device, inputs, outputs, drop)
    if kept is not None:
        out[417].copy_(kept)


def _past_the_end(device: FakeDevice, inputs: Tensors, outputs: Tensors, drop: int | None) -> None:
    honest(device, inputs, outputs, drop)
    out = outputs["out"]
    beyond = out.as_strided((out.numel() + 3,), (1,), out.storage_offset())
    beyond[-3:] = 1.0


def _input_written(device: FakeDevice, inputs: Tensors, outputs: Tensors, drop: int | None) -> None:
    honest(device, inputs, outputs, drop)
    inputs["x"].flatten()[0] = 1.0
    inputs["x"].mul_(2.0)


def _different_bits(device: FakeDevice, inputs: Tensors, outputs: Tensors, drop: int | None) -> None:
    honest(device, inputs, outputs, drop)
    if device.calls % 2:  # every other time the first element is rounded to the other side, within any fair bound
        first = outputs["out"][:1, :1]
        exact = load_implementation(device.spec).reference(inputs, device.attributes)["out"][:1, :1]
        if not (first.isfinite().all() and exact.isfinite().all()):
            return  # a special value has no other side: it would be another class, and refused as that
        bits = first.view(torch.int32 if first.dtype is torch.float32 else torch.int16)
        sides = [side for step in (-1, 1) if (side := (bits + step).view(first.dtype)).isfinite().all()]
        first.copy_(min(sides, key=lambda side: float((side.double() - exact).abs())))


def _always_right(device: FakeDevice, inputs: Tensors, outputs: Tensors, drop: int | None) -> None:
    """The outputs come from elsewhere: leaving launches out changes nothing."""
    honest(device, inputs, outputs, None)


def _fault(code: str):
    def behave(device: FakeDevice, inputs: Tensors, outputs: Tensors, drop: int | None) -> None:
        raise DeviceFault(code, "driver words", dead=code != "too_large")

    return behave


@pytest.mark.parametrize(
    ("behaviour", "outcome", "code"),
    [
        (_unwritten, Outcome.INCORRECT_NUMERIC, "not_written"),
        (_halved, Outcome.INCORRECT_NUMERIC, "all_wrong"),
        (_one_row_of_many, Outcome.INCORRECT_NUMERIC, "not_written"),
        (_past_the_end, Outcome.OUT_OF_BOUNDS, "guard_broken"),
        (_input_written, Outcome.POLICY_VIOLATION, "input_written"),
        (_different_bits, Outcome.INCORRECT_NONDETERMINISTIC, "nondeterministic"),
        (_always_right, Outcome.REWARD_HACK, "launch_without_effect"),
        (_fault("illegal_address"), Outcome.OUT_OF_BOUNDS, "illegal_address"),
        (_fault("misaligned_address"), Outcome.RUNTIME_ERROR, "misaligned_address"),
        (_fault("launch_failed"), Outcome.RUNTIME_ERROR, "crash"),
        (_fault("too_large"), Outcome.RESOURCE_INFEASIBLE, "grid_too_large"),
        (_fault("timeout"), Outcome.TIMEOUT, "timeout"),
    ],
)
def test_a_wrong_kernel_has_its_outcome(behaviour, outcome: Outcome, code: str, monkeypatch) -> None:
    run, host, planners = device_run(monkeypatch, NORM, behaviour)
    found, reason = judged(run)
    assert (found, reason.code) == (outcome, code), reason
    assert reason.case is not None
    assert all(device.closed for device in host.devices)
    assert all(planner.closed for planner in planners.opened)


def test_the_row_of_a_large_output_is_named_by_its_own_number(monkeypatch) -> None:
    run, _, _ = device_run(monkeypatch, NORM, _one_row_of_many)
    _, reason = judged(run)
    assert reason.case == "measured small"
    assert reason.index is not None and reason.index[0] == 417
    assert run.correctness.cases[-1].passed is False


@pytest.mark.parametrize(
    ("planner", "outcome", "code"),
    [
        ({"refusals": [{"code": "host_read", "text": "run() reads a value.", "line": 3}]}, Outcome.POLICY_VIOLATION,
         "host_read"),
        ({"refusals": [{"code": "grid_size", "text": "too large", "line": None}]}, Outcome.RESOURCE_INFEASIBLE,
         "grid_size"),
        ({"forged": True}, Outcome.REWARD_HACK, "plan_forged"),
        ({"fault": Fault(Outcome.RUNTIME_ERROR, "exception", "run() raised", 7)}, Outcome.RUNTIME_ERROR, "exception"),
    ],
)
def test_what_the_sandbox_finds_is_the_verdict_and_the_device_is_never_used(
    planner, outcome: Outcome, code: str, monkeypatch
) -> None:
    run, host, planners = device_run(monkeypatch, NORM, planner=planner)
    found, reason = judged(run)
    assert (found, reason.code) == (outcome, code)
    assert host.calls == 0 and not any(device.loaded for device in host.devices)
    assert all(device.closed for device in host.devices) and "device_held_s" not in run.clocks
    assert all(planner.closed for planner in planners.opened)


@pytest.mark.parametrize(
    ("refusal", "outcome", "code"),
    [
        (PlanRefused("unsupported", "A tensor map of element type 5."), Outcome.UNSUPPORTED, "unsupported"),
        (PlanRefused("forged", "A fill goes to an input."), Outcome.REWARD_HACK, "plan_forged"),
        (PlanRefused("shared", "too much"), Outcome.RESOURCE_INFEASIBLE, "shared_infeasible"),
    ],
)
def test_what_the_launcher_refuses_is_the_verdict(refusal, outcome: Outcome, code: str, monkeypatch) -> None:
    run, host, _ = device_run(monkeypatch, NORM, device={"refuses": refusal})
    found, reason = judged(run)
    assert (found, reason.code) == (outcome, code)
    assert host.calls == 0


@pytest.mark.parametrize(
    ("behaviour", "device"),
    [
        (_fault("illegal_address"), {"well": False}),
        (_fault("launcher_died"), {}),
        (_fault("out_of_memory"), {}),
        (honest, {"refuses": PlanRefused("binary", "no symbol")}),
    ],
)
def test_faults_of_the_device_are_never_charged_to_a_candidate(behaviour, device, monkeypatch) -> None:
    run, host, _ = device_run(monkeypatch, NORM, behaviour, device=device)
    with pytest.raises(InfrastructureError):
        judged(run)
    assert all(device.closed for device in host.devices)


def test_after_a_fault_the_next_call_meets_another_launcher(monkeypatch) -> None:
    run, host, _ = device_run(monkeypatch, NORM, _fault("illegal_address"))
    judged(run)
    assert len(host.devices) == 2
    assert host.calls == 1


def _second_launch_idle(device: FakeDevice, inputs: Tensors, outputs: Tensors, drop: int | None) -> None:
    if drop != 0:
        honest(device, inputs, outputs, None)


def test_one_idle_launch_of_several_is_a_note_for_the_reviewer(monkeypatch) -> None:
    run, _, _ = device_run(monkeypatch, NORM, _second_launch_idle, planner={"launches": 2})
    assert judged(run) == (Outcome.PASSED, None)
    assert [note.code for note in run.notes] == ["launch_without_effect"]
    assert "launch 2 ('_kernel_1') of 2" in run.notes[0].text


def _needs_all(device: FakeDevice, inputs: Tensors, outputs: Tensors, drop: int | None) -> None:
    if drop is not None:
        raise DeviceFault("illegal_address", "an index in scratch was poison")
    honest(device, inputs, outputs, None)


def test_a_launch_whose_absence_breaks_the_next_one_has_an_effect(monkeypatch) -> None:
    run, host, _ = device_run(monkeypatch, NORM, _needs_all, planner={"launches": 2})
    assert judged(run) == (Outcome.PASSED, None)
    assert run.notes == []
    assert all(device.closed for device in host.devices)
