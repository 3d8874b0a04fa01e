"""Before a promotion the file is called natively: what differs refuses, what this host cannot do is nobody's fault."""

from __future__ import annotations

from typing import Any

import pytest

from harness.backends.triton.device import stages
from harness.backends.triton.native.parity import ParityResult
from harness.domain.errors import InfrastructureError
from harness.domain.vocabulary import Outcome, Stage
from harness.evaluation.run import Refused, Run
from harness.operators import registry
from tests.harness.device.fakes import plan_document
from tests.harness.device.runs import SMALL, device_run
from tests.harness.device.test_device_worker import held

NORM = registry.get("rms_norm")


def prepared(monkeypatch: pytest.MonkeyPatch, answer: ParityResult | Exception) -> Run:
    """A run with one recorded plan whose native call gives ``answer``."""
    from harness.backends.triton.check import read_plan
    from harness.backends.triton.planning import argument_documents

    run, _, _ = device_run(monkeypatch, NORM)
    documents = argument_documents(NORM.arguments, SMALL["rms_norm"], "bfloat16")
    run.plans = [read_plan(plan_document(documents, {"eps": 1e-6}), documents, "cuda:90")]
    run.seed, run.stage, run.target = 5, Stage.PROBES, "nvidia-h200"

    def parity(*_: Any, **__: Any) -> ParityResult:
        assert held()
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(stages, "parity", parity)
    monkeypatch.setattr(stages, "binaries_of", lambda plans, compiler: [()])
    return run


def test_the_same_launches_leave_the_host_s_cost(monkeypatch) -> None:
    run = prepared(monkeypatch, ParityResult(True, (), 33.0, 0.5))
    stages.native(run)
    assert run.clocks["native"]["host_us"] == 33.0
    assert run.clocks["device_held_s"] >= 0
    assert not held()


def test_other_launches_are_refused_with_the_difference(monkeypatch) -> None:
    run = prepared(monkeypatch, ParityResult(False, ("The first call launches 2 kernels, the plan 1.",)))
    with pytest.raises(Refused) as refused:
        stages.native(run)
    assert refused.value.outcome is Outcome.REWARD_HACK
    assert refused.value.reasons[0].code == "parity_differs"
    assert "launches 2 kernels" in refused.value.reasons[0].text
    assert not held()


def test_a_host_that_cannot_call_natively_charges_nobody(monkeypatch) -> None:
    run = prepared(monkeypatch, InfrastructureError("no compiler for the launcher"))
    with pytest.raises(InfrastructureError):
        stages.native(run)
    assert not held()
