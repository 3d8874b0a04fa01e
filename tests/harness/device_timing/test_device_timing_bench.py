"""Real plans and binaries of candidate and opponents, timed on the modelled device; and sessions without a run."""

from __future__ import annotations

import random
import re
from collections import OrderedDict
from dataclasses import replace

import pytest

from harness.backends.triton import stages as triton_stages
from harness.backends.triton.derive import matching
from harness.domain.digest import digest_source
from harness.domain.errors import InfrastructureError
from harness.domain.request import Opponent
from harness.domain.vocabulary import Backend, Comparison, Outcome, Role, Stage
from harness.evaluation import sandbox
from harness.evaluation.run import Refused
from harness.evaluation.timing.comparison import compare
from harness.evaluation.timing.device import opponents
from harness.evaluation.timing.device.bench import bench_of, close_bench
from harness.evaluation.timing.device.session import measure
from harness.evaluation.timing.device.shape import Shape
from harness.evaluation.timing.device.stages import benchmark, recheck
from harness.operators.base import ShapePoint
from harness.operators.registry import get
from tests.harness.device_timing.device_model import Model, ModelDevice, plan
from tests.harness.judge.evaluations import make_run

SPEC = get("softmax")
POINT = ShapePoint("33x300", {"rows": 33, "cols": 300}, 1.0)
BASELINE = SPEC.baseline(Backend.TRITON)


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch):
    monkeypatch.setattr(opponents, "_known", OrderedDict())


def narrower(source):
    """The same kernel with one warp, which no other test compiles."""
    return re.sub(r'"num_warps": \d+', '"num_warps": 1', source)


def real_run(candidate, opponent):
    run = make_run(SPEC, Backend.TRITON, candidate, sandbox.opener)
    run.request = replace(run.request, against=(Opponent(Role.BASELINE, digest_source(opponent), opponent),))
    run.workload = replace(run.workload, shapes={Backend.TRITON: (POINT,)})
    run.device, run.stage = "nvidia-h200", Stage.PLAN
    triton_stages.plan(run)
    return run


@pytest.mark.sandbox
def test_recorded_kernels_go_through_both_stages(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNELOPT_VAR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert narrower(BASELINE) != BASELINE
    run = real_run(narrower(BASELINE), BASELINE)

    def warps(recorded):
        return "one" if recorded.steps[0]["launch"]["options"]["num_warps"] == 1 else "many"

    device = ModelDevice(SPEC, Model({"one": 90.0, "many": 100.0}), name_of=warps)
    run.open_device = lambda *_, **__: device
    run.stage = Stage.BENCHMARK
    benchmark(run)
    kernels = run.bench.kernels
    assert set(kernels) == {"candidate", "baseline"} and all(kernel.compile_s > 0 for kernel in kernels.values())
    assert all(binary.cubin and binary.symbol for kernel in kernels.values() for binary in kernel.calls["33x300"][1])
    assert run.clocks["screening_ratio"] == pytest.approx(100 / 90, rel=0.03)
    run.stage = Stage.RECHECK
    recheck(run)
    assert run.comparison is Comparison.FASTER and run.bench is None and device.asked["close"] == 1
    assert run.timing.shapes[0].first_call_us > 1e3


@pytest.mark.sandbox
def test_an_opponent_that_cannot_be_planned_is_not_the_candidates_affair(monkeypatch):
    broken = BASELINE.replace("def run(x, out):", "def run(x, out):\n    float(x.sum().item())", 1)
    assert broken != BASELINE
    run = real_run(BASELINE, broken)
    with pytest.raises(InfrastructureError, match="baseline kernel"):
        bench_of(run)

    def foreign(*_, **__):
        raise matching.IrForeign("_kernel", "it is another one")

    run = real_run(BASELINE, narrower(BASELINE))
    monkeypatch.setattr(matching, "prove", foreign)
    with pytest.raises(InfrastructureError, match="it is another one"):
        bench_of(run)


@pytest.mark.sandbox
def test_an_opponent_is_recorded_and_compiled_once_in_a_process(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNELOPT_VAR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    asked = []

    def benched(candidate, other):
        run = real_run(candidate, other)
        run.open_device = lambda *_, **__: ModelDevice(SPEC, Model({}))
        opening = run.open_workers
        run.open_workers = lambda mode: asked.append(mode) or opening(mode)
        run.stage = Stage.BENCHMARK
        kernel = bench_of(run).kernels["baseline"]
        close_bench(run)
        return kernel

    first = benched(BASELINE, BASELINE)
    assert "triton-plan" in asked
    asked.clear()
    assert benched(narrower(BASELINE), BASELINE) is first and asked == []
    assert benched(BASELINE, narrower(BASELINE)) is not first and "triton-plan" in asked


def kernels(**names):
    return {side: (plan(name), ()) for side, name in names.items()}


@pytest.mark.parametrize(("mine", "expected"), [(100.0, Comparison.CANNOT_TELL), (90.0, Comparison.FASTER)])
def test_a_session_without_an_evaluation(mine, expected):
    device = ModelDevice(SPEC, Model({"mine": mine, "other": 100.0}))
    samples = measure(device, SPEC, POINT, kernels(candidate="mine", opponent="other"), rounds=5, pairs=12, seed=4,
                      source=random.Random(4), look=lambda uuid: None)
    (shape,) = samples.shapes
    assert set(shape.versus) == {"opponent"} and len(shape.aa) == 5 and len(shape.aa[0].other) == 12
    assert compare(samples, "opponent").comparison is expected
    assert len(device.requests) == 6  # one to learn what a call takes


def test_sessions_share_a_prepared_shape_and_never_its_contents():
    device, draw = ModelDevice(SPEC, Model({"mine": 5.0, "other": 5.0})), random.Random(2)
    shape = Shape(SPEC, POINT, dtype="bfloat16", regimes=("normal",), seed=1, source=draw, stage="measure")
    for _ in range(2):
        measure(device, SPEC, POINT, kernels(candidate="mine", opponent="other"), rounds=2, pairs=4, shape=shape,
                source=draw, look=lambda uuid: None)
    assert [len(request.sweeps[0].slots) for request in device.requests] == [1, 16, 16, 16, 16]
    starts = [start for request in device.requests for sweep in request.sweeps for start in sweep.starts]
    assert len(starts) == len(set(starts))
    shape.close()


def test_a_wrong_timed_output_ends_a_session_without_an_evaluation_too():
    device = ModelDevice(SPEC, Model({"mine": 50.0, "other": 100.0}, wrong="mine"))
    with pytest.raises(Refused) as caught:
        measure(device, SPEC, POINT, kernels(candidate="mine", opponent="other"), rounds=2, pairs=4,
                source=random.Random(2), look=lambda uuid: None)
    assert caught.value.outcome is Outcome.REWARD_HACK
