"""Our own kernels beside libraries: the clock of launch plans on a simulated device, that of CPU processes for real."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.backends.triton.launcher.client import DeviceFault
from harness.backends.triton.launcher.requests import RoundRequest, RoundResult
from harness.domain.errors import InfrastructureError
from harness.domain.vocabulary import Backend
from harness.evaluation.timing.device.session import Kernel
from harness.operators import registry
from harness.operators.base import ShapePoint
from harness.peers import ours
from tests.harness.device_timing.device_model import Model, ModelDevice, plan

SPEC = registry.get("softmax")
POINTS = (ShapePoint("64x96", {"rows": 64, "cols": 96}, 0.5), ShapePoint("8x160", {"rows": 8, "cols": 160}, 0.5))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELOPT_VAR", str(tmp_path))


def test_launch_plans_are_timed_shape_by_shape_by_the_device_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    device = ModelDevice(SPEC, Model({"plain": 50.0, "better": 25.0}))
    monkeypatch.setattr(ours, "opponent", lambda run, name, text, points: Kernel(
        {point.label: (plan(text), ()) for point in points}))
    clock = ours.PlanClock(SPEC, "llm", POINTS, {"baseline": "plain", "playbook": "better"}, "nvidia-h200",
                           lambda: device)
    try:
        assert clock.pieces == [("64x96",), ("8x160",)]
        found = clock.round(("8x160",), 6)
        assert set(found) == {"8x160"} and {name: len(values) for name, values in found["8x160"].items()} == {
            "baseline": 6, "playbook": 6}
        assert sum(found["8x160"]["baseline"]) > 1.8 * sum(found["8x160"]["playbook"])
        moved = 2 * 8 * 160 * 2
        assert clock.floor_s("8x160") == pytest.approx(moved / 4.4e12, rel=1e-6)
        assert clock.rates() == {"copy_gbps": 4200.0, "read_gbps": 4400.0}
    finally:
        clock.close()


class Failing(ModelDevice):
    """Ends with a fault in every round."""

    def round(self, request: RoundRequest, *, timeout_s: float = 30.0) -> RoundResult:
        raise DeviceFault("launch_failed", "CUDA_ERROR_LAUNCH_FAILED")


@pytest.mark.parametrize(("faults", "survives"), [(1, True), (9, False)])
def test_a_lost_launcher_is_replaced_once(monkeypatch: pytest.MonkeyPatch, faults: int, survives: bool) -> None:
    made: list[ModelDevice] = []

    def start() -> ModelDevice:
        made.append((Failing if len(made) < faults else ModelDevice)(SPEC, Model({"plain": 50.0})))
        return made[-1]

    monkeypatch.setattr(ours, "opponent", lambda run, name, text, points: Kernel(
        {point.label: (plan(text), ()) for point in points}))
    clock = ours.PlanClock(SPEC, "llm", POINTS, {"baseline": "plain"}, "nvidia-h200", start)
    try:
        if survives:
            assert len(clock.round(("64x96",), 4)["64x96"]["baseline"]) == 4
        else:
            with pytest.raises(InfrastructureError, match="failed twice"):
                clock.round(("64x96",), 4)
        assert len(made) == 2
    finally:
        clock.close()


@pytest.mark.sandbox
def test_sandboxed_processes_are_timed_all_shapes_together() -> None:
    clock = ours.CpuClock(SPEC, "llm", POINTS, {"baseline": SPEC.baseline(Backend.NUMBA)})
    try:
        (piece,) = clock.pieces
        found = clock.round(piece, 2)
        assert set(found) == {"64x96", "8x160"}
        assert all(len(values["baseline"]) == 2 and min(values["baseline"]) > 0 for values in found.values())
    finally:
        clock.close()
