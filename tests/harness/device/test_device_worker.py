"""What the judge may count on from any worker, on the device worker; plans are made once; the device is not kept."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest

from harness.backends.triton.compiler.compiled import CompileFailed
from harness.backends.triton.device import faults, opener, plans
from harness.backends.triton.device.holding import Holding, hold
from harness.backends.triton.device.plans import Plans
from harness.backends.triton.device.worker import DeviceWorker
from harness.backends.triton.targets import find_target
from harness.domain.errors import InfrastructureError
from harness.domain.verdict import Reason
from harness.domain.vocabulary import Outcome, Stage
from harness.evaluation.judge.inputs import all_attributes, make_inputs
from harness.evaluation.judge.lending import Lending
from harness.evaluation.judge.smoke import smoke
from harness.evaluation.ports import Announced, CandidateFault
from harness.evaluation.run import Refused
from harness.hardware import exclusive
from harness.operators import registry
from tests.harness.device.fakes import FakeHost, FakePlanners
from tests.harness.device.runs import device_run

NORM = registry.get("rms_norm")
ATTRIBUTES = all_attributes(NORM, {})


def lend(rows: int = 3, cols: int = 40, layout: Any = "dense") -> Lending:
    inputs = make_inputs(NORM, {"rows": rows, "cols": cols}, "normal", ATTRIBUTES, "bfloat16", 1)
    return Lending(NORM, inputs, ATTRIBUTES, "bfloat16", layout)


def opened(monkeypatch: pytest.MonkeyPatch, **options: Any) -> tuple[DeviceWorker, FakeHost, FakePlanners]:
    run, host, planners = device_run(monkeypatch, NORM, **options)
    return run.open_workers("triton-device").open(), host, planners  # type: ignore[return-value]


@pytest.mark.parametrize("layout", ["dense", "strided", "offset"])
def test_a_call_fills_the_outputs_and_nothing_else(layout: str, monkeypatch) -> None:
    worker, host, planners = opened(monkeypatch)
    assert worker.load("source").seconds >= 0
    with lend(layout=layout) as lending:
        report = worker.call(lending.lent, ATTRIBUTES)
        collected = lending.collect()
        assert not collected.untouched["out"].any()
        assert lending.broken_guards(Stage.SMOKE) == []
    assert report.seconds > 0
    assert report.claimed_s is None
    assert report.scratch_bytes == 0
    worker.close()
    worker.close()
    assert all(device.closed for device in host.devices) and all(planner.closed for planner in planners.opened)
    with pytest.raises(InfrastructureError), lend() as lending:
        worker.call(lending.lent, ATTRIBUTES)


def test_scratch_is_what_the_plan_says(monkeypatch) -> None:
    worker, _, _ = opened(monkeypatch, planner={"scratch": 4096})
    worker.load("source")
    with lend() as lending:
        assert worker.call(lending.lent, ATTRIBUTES).scratch_bytes == 4096
    worker.close()


def test_a_plan_is_recorded_once_per_sizes_and_attributes(monkeypatch) -> None:
    worker, host, planners = opened(monkeypatch)
    worker.load("source")
    with lend() as lending:
        for _ in range(3):
            worker.call(lending.lent, ATTRIBUTES)
        worker.call(lending.lent, {**ATTRIBUTES, "eps": 0.5})
    with lend(cols=41) as lending:
        worker.call(lending.lent, ATTRIBUTES)
    assert sum(planner.asked for planner in planners.opened) == 3
    assert len(host.devices) == 1
    assert len(host.devices[0]._plans) == 3
    worker.close()


def test_announced_calls_need_nothing_more_when_they_come(monkeypatch) -> None:
    worker, _, planners = opened(monkeypatch)
    worker.load("source")
    worker.prepare([Announced({"rows": rows, "cols": 40}, ATTRIBUTES, "bfloat16") for rows in range(1, 12)])
    assert sum(planner.asked for planner in planners.opened) == 11
    assert len(planners.opened) <= plans.MOST_PLANNERS
    assert not held()
    with lend(rows=5) as lending:
        worker.call(lending.lent, ATTRIBUTES)
        assert worker.launches(lending.lent, ATTRIBUTES) == ("_kernel_0",)
    assert sum(planner.asked for planner in planners.opened) == 11
    worker.close()
    assert all(planner.closed for planner in planners.opened)


def test_preparing_and_resting_let_others_have_the_device(monkeypatch) -> None:
    run, host, _ = device_run(monkeypatch, NORM)
    worker: Any = run.open_workers("triton-device").open()
    worker.load("source")
    with lend() as lending:
        worker.call(lending.lent, ATTRIBUTES)
        assert held()
        worker.prepare([])
        assert not held()
        worker.call(lending.lent, ATTRIBUTES)
        worker.rest()
        assert not held()
        worker.call(lending.lent, ATTRIBUTES)
        assert held()
    assert [device.closed for device in host.devices] == [False]  # one launcher, idle in between
    worker.close()
    assert host.devices[0].closed and not held()


def held() -> bool:
    """Whether somebody has the test's device."""
    try:
        with exclusive.device("nvidia-test", 0.0):
            return False
    except InfrastructureError:
        return True


def test_the_time_is_charged_to_the_stage_that_held_the_device(monkeypatch) -> None:
    run, host, _ = device_run(monkeypatch, NORM)
    run.stage = Stage.SMOKE
    holding = Holding(run)
    holding.device()
    run.stage = Stage.CORRECTNESS
    assert holding.device() is host.devices[0]
    holding.release()
    holding.release()
    assert set(run.clocks["device_held_by_stage_s"]) == {"smoke", "correctness"}
    total = sum(run.clocks["device_held_by_stage_s"].values())
    assert run.clocks["device_held_s"] == pytest.approx(total, abs=1e-3)
    with hold(run) as device:
        assert device is host.devices[1]
    assert device.closed and not held()


def test_waiting_for_the_device_is_not_charged_to_the_candidate(monkeypatch) -> None:
    run, _, _ = device_run(monkeypatch, NORM)
    run.deadline = 1e6
    other = ExitStack()
    other.enter_context(exclusive.device("nvidia-test", 0.0))
    told = []

    def waiting(*words: Any) -> None:
        told.append(words[-1])
        other.close()

    run.progress = waiting
    with hold(run):
        assert run.deadline > 1e6
    assert told == ["waiting for another evaluation on nvidia-test"]
    assert not held()


def test_a_launcher_that_does_not_start_gives_the_device_back(monkeypatch) -> None:
    run, _, _ = device_run(monkeypatch, NORM)

    def broken() -> Any:
        raise InfrastructureError("no driver")

    run.open_device = broken
    with pytest.raises(InfrastructureError), hold(run):
        pass
    assert not held()


def test_a_launcher_starts_in_the_background_without_the_lock(monkeypatch) -> None:
    run, host, _ = device_run(monkeypatch, NORM)
    holding = Holding(run)
    holding.warm()
    holding.warm()
    assert not held()
    device = holding.device()
    assert held() and host.devices == [device]
    holding.pause()
    holding.warm()
    assert not held() and not device.closed
    assert holding.device() is device
    holding.release()
    assert device.closed and not held()
    holding.warm()
    holding.release()  # nobody asked for it in the end
    assert [one.closed for one in host.devices] == [True, True]


def test_what_fails_in_the_background_is_told_to_whoever_needs_the_launcher(monkeypatch) -> None:
    run, host, _ = device_run(monkeypatch, NORM)
    answers = [InfrastructureError("no driver")]

    def sometimes() -> Any:
        if answers:
            raise answers.pop()
        return host()

    holding = Holding(run, sometimes)
    holding.warm()
    with pytest.raises(InfrastructureError, match="no driver"):
        holding.device()
    assert not held()
    assert holding.device() is host.devices[0]
    holding.release()
    answers.append(InfrastructureError("no driver"))
    holding.warm()
    holding.release()
    assert not held()


def test_one_kernel_that_does_not_compile_spoils_no_other_call(monkeypatch) -> None:
    planners = FakePlanners()

    def compile_some(found: list[Any], *_: Any, **__: Any) -> list[Any]:
        for plan in found:
            if plan.buffers[0].shape[0] == 2:
                raise CompileFailed("error", "_kernel", "type mismatch")
        return [() for _ in found]

    monkeypatch.setattr(plans, "binaries_of", compile_some)
    made = Plans(planners.open, find_target("nvidia-h200"), lambda: 60.0, lambda recorded: None)
    made.load("source")
    calls = []
    for rows in (1, 2, 3):
        with lend(rows=rows) as lending:
            calls.append((plans.planning.lent_documents(lending.lent), ATTRIBUTES))
    made.prepare(calls)
    made.get(*calls[0])
    with pytest.raises(CandidateFault) as caught:
        made.get(*calls[1])
    assert (caught.value.fault.outcome, caught.value.fault.code) == (Outcome.COMPILE_ERROR, "compile_error")
    made.get(*calls[2])
    made.close()


def test_code_that_does_not_follow_from_the_file_ends_the_session_and_all_it_opened(monkeypatch) -> None:
    run, host, planners = device_run(monkeypatch, NORM)

    def foreign(*_: Any) -> None:
        raise Refused(Outcome.REWARD_HACK, Reason("ir_foreign", Stage.SMOKE, "other code"))

    monkeypatch.setattr(opener, "derive", foreign)
    run.stage = Stage.SMOKE
    with pytest.raises(Refused, match="other code"):
        smoke(run)
    assert host.calls == 0 and all(device.closed for device in host.devices)
    assert planners.opened and all(planner.closed for planner in planners.opened)
    assert run.judging is None


@pytest.mark.parametrize(
    ("problem", "outcome", "code"),
    [
        ("refused", Outcome.POLICY_VIOLATION, "ir_refused"),
        ("infeasible", Outcome.RESOURCE_INFEASIBLE, "compile_infeasible"),
        ("forged", Outcome.REWARD_HACK, "plan_forged"),
        ("timeout", Outcome.TIMEOUT, "compile_timeout"),
    ],
)
def test_compile_problems_have_outcomes(problem: str, outcome: Outcome, code: str) -> None:
    fault = faults.uncompiled(CompileFailed(problem, "_kernel", "words"))
    assert (fault.outcome, fault.code) == (outcome, code)
    assert "_kernel" in fault.text
