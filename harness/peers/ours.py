"""Our own kernels beside the libraries: by launch plans on a GPU, by sandboxed processes on a CPU.

They were verified when they were judged; here they are only timed, by the evaluator's own clocks.
"""

from __future__ import annotations

import os
import random
import secrets
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from harness.backends.numba.stages import compile_request, smallest_case
from harness.backends.triton.launcher.client import Device, DeviceFault
from harness.domain.digest import digest_source
from harness.domain.errors import InfrastructureError
from harness.domain.goal import Goal
from harness.domain.request import EvaluationRequest, OperatorRef, SourceRef
from harness.domain.vocabulary import Backend, Purpose, Stage
from harness.evaluation import sandbox
from harness.evaluation.buffers import DTYPES
from harness.evaluation.judge.checking import dims_in_use
from harness.evaluation.run import Run
from harness.evaluation.timing.device import session as device_session
from harness.evaluation.timing.device.contents import Factors
from harness.evaluation.timing.device.opponents import opponent
from harness.evaluation.timing.device.shape import Shape, prepare
from harness.evaluation.timing.record import Record
from harness.evaluation.timing.rings import Rings
from harness.evaluation.timing.session import Session
from harness.hardware.cores import reserve
from harness.hardware.detect import detect_cpu, environment
from harness.hardware.device_roofs import DeviceRoofs, device_roofs, matrix_peak
from harness.hardware.matmul import MatmulRoof, matmul_roof
from harness.hardware.roofs import roofs
from harness.operators.base import OperatorSpec, ShapePoint
from harness.peers.session import Us

STEP_S = 60.0
UNCOMPARED = (0.0, 0.0)


class PlanClock:
    """Launch plans on this host's GPU, one session per shape on one launcher."""

    def __init__(self, spec: OperatorSpec, workload: str, points: Sequence[ShapePoint], sources: Mapping[str, str],
                 hardware: str, start: Callable[[], Device]) -> None:
        """Everything that needs no device: plans, binaries and contents. ``start`` opens a launcher, later.

        Raises:
            InfrastructureError: a kernel cannot be recorded or compiled here.
        """
        self._spec, self._hardware, self._start = spec, hardware, start
        chosen = spec.workloads[workload]
        self._dtype = chosen.dtypes[Backend.TRITON]
        run = _run_of(spec, workload, Backend.TRITON, hardware, next(iter(sources.values())))
        self._random, seed = random.Random(secrets.randbits(64)), secrets.randbits(128)
        with ThreadPoolExecutor(len(sources)) as pool:
            made = {name: pool.submit(opponent, run, name, text, points) for name, text in sources.items()}
            self._kernels = {name: one.result() for name, one in made.items()}
        self._shapes: dict[str, Shape] = prepare(spec, tuple(points), dtype=self._dtype, regimes=chosen.regimes,
                                                 seed=seed, source=self._random, stage="peers")
        for shape in self._shapes.values():
            shape.near = UNCOMPARED  # nothing is compared here, and finding out how close is close takes seconds
        self._factors = Factors(seed, "peers")
        self._device: Device | None = None
        self._sessions: dict[str, device_session.Session] = {}
        self.pieces = [(point.label,) for point in points]

    def round(self, piece: Sequence[str], pairs: int) -> Us:
        """See ``Ours``; the device has to be held. A launcher that a fault ended is replaced, and the round taken
        again, once.

        Raises:
            InfrastructureError: it fails again.
        """
        try:
            return self._round(piece, pairs)
        except DeviceFault:
            self._end()
        try:
            return self._round(piece, pairs)
        except DeviceFault as fault:
            self._end()
            raise InfrastructureError(f"The device failed twice, in fresh launchers: {fault.text} ({fault.code}).") \
                from fault

    def _round(self, piece: Sequence[str], pairs: int) -> Us:
        found: Us = {}
        for label in piece:
            log = self._session(label).logs[label]
            self._session(label).rounds(1, {label: pairs}, repeats=1, slopes=False)
            found[label] = {name: log.rounds[name][-1] for name in self._kernels}
        return found

    def _end(self) -> None:
        self._sessions.clear()
        if self._device is not None:
            self._device.close()
            self._device = None

    def _session(self, label: str) -> device_session.Session:
        if not self._sessions:  # everything is loaded before anything runs, as in an evaluation
            device = self._device = self._device or self._start()
            for name, shape in self._shapes.items():
                self._sessions[name] = device_session.Session(device, {name: shape}, self._factors, stage=Stage.RECHECK,
                                                              source=self._random)
                self._sessions[name].load(self._kernels)
        session = self._sessions[label]
        if self._shapes[label].expected_us is None:
            session.estimate()
        return session

    def floor_s(self, label: str) -> float:
        """See ``Ours``."""
        shape = self._shapes[label]
        dims = dims_in_use(self._spec, shape.point.dims, shape.inputs)
        moved = self._spec.bytes_per_call(dims, DTYPES[self._dtype].itemsize)
        measured, matmul = self._roofs()
        rate = matmul.rate(self._dtype) or matrix_peak(self._hardware, self._dtype)
        return measured.floor_s(moved, self._spec.flops_per_call(dims), rate)

    def rates(self) -> dict[str, float]:
        """See ``Ours``."""
        measured, matmul = self._roofs()
        found = {"copy_gbps": round(measured.copy / 1e9, 1), "read_gbps": round(measured.read / 1e9, 1)}
        return found if matmul.flops is None else {**found, "matmul_tflops": round(matmul.flops / 1e12, 1)}

    def _roofs(self) -> tuple[DeviceRoofs, MatmulRoof]:
        """Kept ones, or measured now."""
        if self._device is None:
            self._device = self._start()
        class_ = environment(Backend.TRITON, self._hardware).class_
        return device_roofs(self._device, class_), matmul_roof(class_)

    def close(self) -> None:
        """See ``Ours``."""
        self._end()
        for shape in self._shapes.values():
            shape.close()
        self._factors.close()


class CpuClock:
    """Sandboxed processes on the clock's cores; one round is one set of fresh processes over all shapes."""

    def __init__(self, spec: OperatorSpec, workload: str, points: Sequence[ShapePoint],
                 sources: Mapping[str, str]) -> None:
        """Opens the clock. Raises ``InfrastructureError`` where no sandbox starts."""
        self._spec, self._points, self._sources = spec, {point.label: point for point in points}, dict(sources)
        chosen = spec.workloads[workload]
        self._rings = Rings(spec, points, chosen.dtypes[Backend.NUMBA], chosen.regimes, secrets.randbits(128),
                            detect_cpu().last_level_bytes)
        self._session: Session | None = None
        self.pieces = [tuple(self._points)]

    def round(self, piece: Sequence[str], pairs: int) -> Us:
        """See ``Ours``; the clock's cores have to be held."""
        if self._session is None:
            self._session = Session(
                sandbox.opener(str(Backend.NUMBA)), tuple(self._points.values()), self._rings, stage=Stage.RECHECK,
                cores=reserve(), compile_request=compile_request(self._spec, smallest_case(self._spec)),
                deadline_s=STEP_S)
        record = Record()
        self._session.quiet_round(self._sources, record, pairs, 1)
        return {label: {name: record.shapes[label].rounds[name][-1] for name in self._sources} for label in piece}

    def floor_s(self, label: str) -> float:
        """See ``Ours``."""
        dims = self._points[label].work
        return roofs().floor_s(self._spec.bytes_per_call(dims, 4), self._spec.flops_per_call(dims),
                               self._rings[label].footprint)

    def rates(self) -> dict[str, float]:
        """None by one name: a CPU's roof depends on how much is moved."""
        return {}

    def close(self) -> None:
        """See ``Ours``."""
        if self._session is not None:
            self._session.close()
            self._session = None
        self._rings.close()


def _run_of(spec: OperatorSpec, workload: str, backend: Backend, hardware: str, source: str) -> Run:
    """The record of an evaluation that kernels are recorded and compiled under; nothing of it is judged."""
    goal = Goal(operator=spec.name, backend=backend, hardware=hardware, workload=workload)
    request = EvaluationRequest(
        job=uuid.uuid4().hex, nonce=os.urandom(8).hex(), purpose=Purpose.PROBE,
        operator=OperatorRef(spec.name, spec.version), backend=backend, hardware=hardware, workload=workload, goal=goal,
        candidate=SourceRef(digest_source(source), source))
    opener: Any = sandbox.opener
    return Run(request=request, spec=spec, workload=spec.workloads[workload], open_workers=opener,
               progress=lambda *_: None, target=hardware)
