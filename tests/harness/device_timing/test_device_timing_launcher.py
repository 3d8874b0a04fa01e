"""The judge's rounds through the launcher's own code, on a simulated driver: both sides of the contract at once."""

from __future__ import annotations

import os
import random

import numpy as np
import pytest

from harness.backends.triton.launcher import program
from harness.backends.triton.launcher.binary import Binary
from harness.backends.triton.launcher.process import LauncherProcess
from harness.backends.triton.launcher.program import Launcher
from harness.backends.triton.launcher.requests import DeviceInfo
from harness.domain.errors import InfrastructureError
from harness.domain.plan import LaunchPlan, PlanBuffer
from harness.domain.vocabulary import Outcome, Stage
from harness.evaluation.run import Refused
from harness.evaluation.timing.device import shape as shapes
from harness.evaluation.timing.device.contents import Factors
from harness.evaluation.timing.device.session import Kernel, Session
from harness.evaluation.timing.device.shape import Shape
from harness.operators.base import ShapePoint
from harness.operators.registry import get
from tests.harness.launcher.fake_cuda import FakeCuda

ROWS, COLS = 24, 40
SPEC, POINT = get("softmax"), ShapePoint("24x40", {"rows": ROWS, "cols": COLS}, 1.0)


def softmax(memory, values, grid):
    """Row by row in float32."""
    x = memory.array(values[0], "float32", ROWS * COLS).reshape(ROWS, COLS)
    with np.errstate(invalid="ignore"):
        powers = np.exp(x - x.max(1, keepdims=True))
        out = powers / powers.sum(1, keepdims=True)
    memory.array(values[1], "float32", ROWS * COLS)[:] = out.ravel()


def once(memory, values, grid):
    """Does its work where the scratch does not say that it did before."""
    note = memory.array(values[2], "uint32", 1)
    if note[0] != 4321:
        softmax(memory, values, grid)
        note[0] = 4321


def half(memory, values, grid):
    """Leaves the second half of the rows as they were."""
    before = memory.array(values[1], "float32", ROWS * COLS).copy()
    softmax(memory, values, grid)
    memory.array(values[1], "float32", ROWS * COLS)[ROWS * COLS // 2 :] = before[ROWS * COLS // 2 :]


def writer(memory, values, grid):
    """Changes its input when it has read it."""
    softmax(memory, values, grid)
    memory.array(values[0], "float32", ROWS * COLS)[ROWS * COLS // 2] += 1.0


KERNELS = {"softmax": softmax, "once": once, "half": half, "writer": writer}


class InProcess(LauncherProcess):
    """The judge's client, whose launcher is an object."""

    def __init__(self, launcher):
        self.launcher = launcher
        self.info = DeviceInfo(**{**launcher.info(), "memory_bytes": 1 << 30})

    def _ask(self, request, fds=(), *, timeout_s):
        return self.launcher.answer(request, [os.dup(fd) for fd in fds])


@pytest.fixture
def device(monkeypatch):
    fake = FakeCuda(KERNELS, {name: [8, 8, 8] for name in KERNELS})
    original = fake.attempt
    fake.attempt = lambda name, *given: 0 if name == "cuCtxSetLimit" else original(name, *given)
    fake._cuDeviceGetName = fake._cuDeviceGetUuid_v2 = lambda *given: 0
    monkeypatch.setattr(program, "Cuda", lambda index: fake)
    monkeypatch.setattr(shapes, "MOST_SPACER", 4096)  # simulated memory is filled with noise, which takes its time
    monkeypatch.setattr(shapes, "MOST_SLOTS", 20)  # and so do rings of it
    monkeypatch.setattr(shapes, "SLOPE_S", 2e-4)
    return InProcess(Launcher(0, exact=False))


def call(name):
    array = {"bytes": 4 * ROWS * COLS, "align": 512, "shape": (ROWS, COLS), "strides": (COLS, 1), "dtype": "float32"}
    buffers = (PlanBuffer(0, "input", **array), PlanBuffer(1, "output", **array),
               PlanBuffer(2, "scratch", 64, 512, (16,), (1,), "int32"))
    launch = {"function": name, "ir": "sha256:0", "grid": [ROWS, 1, 1], "num_ctas": 1, "cooperative": False,
              "pdl": False, "args": [{"buffer": number, "offset": 0} for number in range(3)]}
    return (LaunchPlan("cuda:90", "triton 3.7.1", "same", buffers, ({"launch": launch},)),
            (Binary(name, b"\0\0\0", 4, 1, 0),))


def session_of(device, candidate, other="softmax"):
    draw = random.Random(3)
    shape = Shape(SPEC, POINT, dtype="float32", regimes=("normal", "masked"), seed=9, source=draw, stage="test")
    factors = Factors(9, "test")
    session = Session(device, {POINT.label: shape}, factors, stage=Stage.RECHECK, source=draw, look=lambda uuid: None)
    session.load({side: Kernel({POINT.label: call(name)})
                  for side, name in {"candidate": candidate, "other": other, "again": "softmax"}.items()})
    shape.settle([1.0])
    return session


def test_honest_rounds_are_measured_and_verified_bit_for_bit(device):
    session = session_of(device, "softmax")
    session.rounds(2, {POINT.label: 3})
    assert session.verify() >= 2
    log = session.logs[POINT.label]
    assert {side: [len(one) for one in rounds] for side, rounds in log.rounds.items()} == {
        side: [3, 3] for side in ("candidate", "other", "again")}
    assert set(log.slopes) == {"candidate", "other", "again"}
    assert all(us > 0 for rounds in log.rounds.values() for one in rounds for us in one)
    assert log.apart == []


@pytest.mark.parametrize("cheat", ["once", "half"])
def test_what_a_cheat_leaves_in_batches_is_found(device, cheat):
    session = session_of(device, cheat)
    session.rounds(1, {POINT.label: 4})
    with pytest.raises(Refused) as caught:
        session.verify()
    assert (caught.value.outcome, caught.value.reasons[0].code) == (Outcome.REWARD_HACK, "timed_output_wrong")


def test_rows_left_out_are_found_by_the_comparison_alone(device):
    session = session_of(device, "half")
    session.rounds(1, {POINT.label: 4})
    log = session.logs[POINT.label]
    log.left.clear()  # as if none of the missing rows had been kept
    assert all(one.found.index == ROWS * COLS // 2 and one.found.output == "out" for one in log.apart)
    with pytest.raises(Refused) as caught:
        session.verify()
    (reason,) = caught.value.reasons
    assert (reason.code, reason.index, reason.got) == ("timed_output_wrong", (ROWS // 2, 0), "not written")


def test_an_input_written_under_the_clock_is_charged(device):
    session = session_of(device, "writer")
    with pytest.raises(Refused) as caught:
        session.rounds(1, {POINT.label: 4})
    assert (caught.value.outcome, caught.value.reasons[0].code) == (Outcome.POLICY_VIOLATION, "input_written")


def test_an_opponent_that_writes_its_input_is_not_the_candidates_affair(device):
    session = session_of(device, "softmax", other="writer")
    with pytest.raises(InfrastructureError, match="other kernel"):
        session.rounds(1, {POINT.label: 4})
