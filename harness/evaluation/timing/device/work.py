"""What the calls of a device's shapes have to do, and the least time that its roofs leave for it."""

from __future__ import annotations

from harness.backends.triton.launcher.client import Device
from harness.domain.vocabulary import Backend
from harness.evaluation.buffers import DTYPES
from harness.evaluation.judge.checking import dims_in_use
from harness.evaluation.run import Run
from harness.evaluation.timing.device.bench import Bench
from harness.evaluation.timing.device.session import Session
from harness.evaluation.timing.figures import IMPOSSIBLE_SHARE, SUSPICIOUS_SHARE, Rates, Work
from harness.evaluation.timing.sides import CANDIDATE
from harness.hardware.detect import environment
from harness.hardware.device_roofs import DeviceRoofs, device_roofs, matrix_peak
from harness.hardware.matmul import MatmulRoof, matmul_roof


def work_of(run: Run, bench: Bench, device: Device, session: Session) -> dict[str, Work]:
    """Bytes, operations and floors of every shape, from the kept roofs of this environment class.

    Roofs that the candidate has beaten in ``session`` are measured again first: they may have been measured on a bad
    day, and nobody is refused for that.
    """
    class_ = environment(run.request.backend, run.device).class_
    roofs, matmul = device_roofs(device, class_), matmul_roof(class_)
    work = _work(run, bench, device, roofs, matmul)
    us = {label: log.us(CANDIDATE) for label, log in session.logs.items()}
    if any(us[label] < IMPOSSIBLE_SHARE * one.least_s * 1e6 for label, one in work.items()):
        roofs = device_roofs(device, class_, afresh=True)
        work = _work(run, bench, device, roofs, matmul)
    if any(us[label] < SUSPICIOUS_SHARE * one.doubt_s * 1e6 for label, one in work.items()):
        matmul = matmul_roof(class_, afresh=True)
        work = _work(run, bench, device, roofs, matmul)
    peak = matrix_peak(str(run.device), run.workload.dtypes[Backend.TRITON])
    run.clocks["roofs"] = {"copy_gbps": round(roofs.copy / 1e9, 1), "read_gbps": round(roofs.read / 1e9, 1),
                           "matmul_tflops": None if matmul.flops is None else round(matmul.flops / 1e12, 1),
                           "matmul_origin": matmul.origin,
                           "matrix_datasheet_tflops": None if peak is None else peak / 1e12}
    return work


def _work(run: Run, bench: Bench, device: Device, roofs: DeviceRoofs, matmul: MatmulRoof) -> dict[str, Work]:
    """The least time leaves out what the cache may keep of the outputs: those bytes go to memory after the call. It
    counts arithmetic at the datasheet's rate; the floor and what is suspicious do at the measured one where there is
    one."""
    dtype = run.workload.dtypes[Backend.TRITON]
    peak = matrix_peak(str(run.device), dtype)
    reached = matmul.rate(dtype)
    rates = Rates(roofs.copy, roofs.read, reached)
    found = {}
    for label, shape in bench.shapes.items():
        dims = dims_in_use(run.spec, shape.point.dims, shape.inputs)
        moved, flops = run.spec.bytes_per_call(dims, DTYPES[dtype].itemsize), run.spec.flops_per_call(dims)
        charged = max(0, moved - min(shape.written_bytes, device.info.l2_bytes))
        found[label] = Work(moved, flops, floor_s=roofs.floor_s(moved, flops, reached or peak),
                            least_s=roofs.floor_s(charged, flops, peak),
                            doubtful_s=roofs.floor_s(charged, flops, reached or peak), rates=rates)
    return found
