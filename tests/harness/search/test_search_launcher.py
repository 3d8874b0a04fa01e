"""The search's clock through the launcher's own code, on a simulated driver."""

from __future__ import annotations

import contextlib
import dataclasses

import pytest

from harness.backends.triton.launcher import program
from harness.backends.triton.launcher.program import Launcher
from harness.domain.vocabulary import Backend
from harness.evaluation.timing.device import shape as shapes
from harness.search.clock import Clock
from harness.search.configs import Built, Config, space_of
from tests.harness.device_timing.test_device_timing_launcher import KERNELS, POINT, SPEC, InProcess, call
from tests.harness.launcher.fake_cuda import FakeCuda


def slow(memory, values, grid):
    """The same result in a launch that follows another."""
    KERNELS["softmax"](memory, values, grid)


def wild(memory, values, grid):
    """Writes far behind its output."""
    memory.array(values[1] + (8 << 20), "float32", 1)[:] = 1.0


@pytest.fixture
def opened(monkeypatch):
    """Launchers on simulated devices, one after the other."""
    monkeypatch.setattr(shapes, "MOST_SPACER", 4096)
    monkeypatch.setattr(shapes, "MOST_SLOTS", 6)
    found = []

    def open_device():
        kernels = {**KERNELS, "slow": slow, "wild": wild}
        fake = FakeCuda(kernels, {name: [8, 8, 8] for name in kernels})
        original = fake.attempt
        fake.attempt = lambda name, *given: 0 if name == "cuCtxSetLimit" else original(name, *given)
        fake._cuDeviceGetName = fake._cuDeviceGetUuid_v2 = lambda *given: 0
        monkeypatch.setattr(program, "Cuda", lambda index: fake)
        device = Ending(Launcher(0, exact=False))
        found.append(device)
        return device

    return open_device, found


class Ending(InProcess):
    """A launcher whose faults are those of a process."""

    closed = False

    def _ask(self, request, fds=(), *, timeout_s):
        from harness.backends.triton.launcher.client import DeviceFault
        from harness.backends.triton.launcher.driver import CudaError

        try:
            return super()._ask(request, fds, timeout_s=timeout_s)
        except CudaError as error:
            raise DeviceFault(error.fault, str(error), dead=error.dead) from error

    def close(self):
        self.closed = True


def clock_and_builds(open_device, names):
    workload = dataclasses.replace(SPEC.workloads["llm"], dtypes={Backend.TRITON: "float32"},
                                   shapes={Backend.TRITON: (POINT,)})
    spec = dataclasses.replace(SPEC, workloads={"llm": workload})
    space = space_of(spec, "llm", spec.baseline(Backend.TRITON))
    (bucket,) = space.buckets
    built = [Built(Config(bucket, (("BLOCK", 256 << n), ("num_warps", 1))), calls={POINT.label: call(kernel)})
             for n, kernel in enumerate(names)]
    clock = Clock(space, "nvidia-h200", open_device, seed=1, lock=lambda *given: contextlib.nullcontext())
    clock.prepare()
    return clock, built


def test_a_group_is_timed_side_by_side(opened):
    open_device, devices = opened
    clock, built = clock_and_builds(open_device, ["softmax", "slow", "once"])
    try:
        found = clock.time(built[1:], built[0], 3)
    finally:
        clock.close()
    for one in built[1:]:
        timed = found[one.config]
        assert [len(timed.us[POINT.label]), len(timed.start_us[POINT.label])] == [3, 3] and not timed.fault
        assert all(us > 0 for us in timed.us[POINT.label])
    assert clock.held_s > 0 and devices[-1].closed


def test_a_kernel_that_breaks_the_context_is_found_and_the_others_are_timed(opened):
    open_device, devices = opened
    clock, built = clock_and_builds(open_device, ["softmax", "slow", "wild", "softmax", "slow"])
    try:
        found = clock.time(built[1:], built[0], 2)
    finally:
        clock.close()
    assert [bool(found[one.config].fault) for one in built[1:]] == [False, True, False, False]
    assert "illegal_address" in found[built[2].config].fault
    assert len(devices) > 1 and all(device.closed for device in devices)
