"""Runs that are judged on a fake device."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.backends.triton.device import opener, plans
from harness.backends.triton.device.opener import workers_of
from harness.domain.vocabulary import Backend
from harness.evaluation.run import Run
from harness.hardware import exclusive
from harness.operators.base import OperatorSpec, ShapePoint
from harness.operators.rope.cases import sizes
from tests.harness.device.fakes import Behaviour, FakeHost, FakePlanners, binaries_without_compiler, honest
from tests.harness.judge.evaluations import make_run

LOCKS = tempfile.TemporaryDirectory(prefix="kernelopt-locks-")
"""Locks of this process's fake devices: another test run on this machine must not wait for them."""
SMALL = {
    "rms_norm": {"rows": 3000, "cols": 96},
    "softmax": {"rows": 3000, "cols": 96},
    "add_rms_norm": {"rows": 3000, "cols": 96},
    "layer_norm": {"rows": 3000, "cols": 96},
    "swiglu": {"rows": 3000, "cols": 96},
    "rope": sizes(5, 40, 4, 2, 8),
    "cross_entropy": {"rows": 3000, "vocab": 96},
    "topk": {"rows": 3000, "cols": 96, "k": 64},
    "matmul_bias_gelu": {"m": 300, "k": 24, "n": 40},
    "decode_attention": {"batch": 5, "q_heads": 4, "kv_heads": 2, "dim": 16, "max_seq": 40},
}


def device_run(
    monkeypatch: pytest.MonkeyPatch, spec: OperatorSpec, behaviour: Behaviour = honest, *,
    planner: dict[str, Any] | None = None, device: dict[str, Any] | None = None,
) -> tuple[Run, FakeHost, FakePlanners]:
    """A run of the baseline on a fake H200, with one small measured shape; its host and its sandboxes."""
    monkeypatch.setattr(exclusive, "lock_path", lambda device: Path(LOCKS.name, f"{device}.lock"))
    monkeypatch.setattr(plans, "binaries_of", binaries_without_compiler)
    monkeypatch.setattr(opener, "derive", lambda run, plans: None)
    run = make_run(spec, Backend.TRITON, spec.baseline(Backend.TRITON), None)
    defaults = {attribute.name: attribute.default for attribute in spec.attributes}
    point = ShapePoint("small", SMALL[spec.name], 1.0, defaults)
    run.workload = replace(run.workload, shapes={Backend.TRITON: (point,)})
    host, planners = FakeHost(spec, behaviour, device or {}), FakePlanners(planner or {})
    run.device, run.open_device = "nvidia-test", host
    run.open_workers = workers_of(run, lambda mode: planners)  # type: ignore[arg-type,return-value]
    return run, host, planners
