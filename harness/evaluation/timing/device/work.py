"""What the calls of a device's shapes have to do, and the least time that its roofs leave for it."""

from __future__ import annotations

from harness.backends.triton.launcher.client import Device
from harness.domain.vocabulary import Backend
from harness.evaluation.buffers import DTYPES
from harness.evaluation.judge.checking import dims_in_use
from harness.evaluation.run import Run
from harness.evaluation.timing.device.bench import Bench
from harness.evaluation.timing.device.session import Session
from harness.evaluation.timing.figures import IMPOSSIBLE_SHARE, Work
from harness.evaluation.timing.sides import CANDIDATE
from harness.hardware.detect import environment
from harness.hardware.device_roofs import DeviceRoofs, device_roofs, matrix_peak


def work_of(run: Run, bench: Bench, device: Device, session: Session) -> dict[str, Work]:
    """Bytes, operations and floors of every shape, from the kept roofs of this environment class.

    Roofs that the candidate has beaten in ``session`` are measured again first: they may have been measured on a bad
    day, and nobody is refused for that.
    """
    class_ = environment(run.request.backend, run.device).class_
    roofs = device_roofs(device, class_)
    work = _work(run, bench, device, roofs)
    if any(log.us(CANDIDATE) < IMPOSSIBLE_SHARE * work[label].least_s * 1e6 for label, log in session.logs.items()):
        roofs = device_roofs(device, class_, afresh=True)
        work = _work(run, bench, device, roofs)
    peak = matrix_peak(str(run.device), run.workload.dtypes[Backend.TRITON])
    run.clocks["roofs"] = {"copy_gbps": round(roofs.copy / 1e9, 1), "read_gbps": round(roofs.read / 1e9, 1),
                           "matrix_datasheet_tflops": None if peak is None else peak / 1e12}
    return work


def _work(run: Run, bench: Bench, device: Device, roofs: DeviceRoofs) -> dict[str, Work]:
    """The least time leaves out what the cache may keep of the outputs: those bytes go to memory after the call."""
    dtype = run.workload.dtypes[Backend.TRITON]
    peak = matrix_peak(str(run.device), dtype)
    found = {}
    for label, shape in bench.shapes.items():
        dims = dims_in_use(run.spec, shape.point.dims, shape.inputs)
        moved, flops = run.spec.bytes_per_call(dims, DTYPES[dtype].itemsize), run.spec.flops_per_call(dims)
        charged = max(0, moved - min(shape.written_bytes, device.info.l2_bytes))
        found[label] = Work(moved, flops, floor_s=roofs.floor_s(moved, flops, peak),
                            least_s=roofs.floor_s(charged, flops, peak))
    return found
