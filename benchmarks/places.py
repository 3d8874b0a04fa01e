"""Where the sessions of ``trust.py`` are measured: by the clock of CPU kernels, or by that of a GPU."""

from __future__ import annotations

import contextlib
import os
import random
import secrets
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

from benchmarks import slowed
from harness.domain.digest import digest_source
from harness.domain.goal import Goal
from harness.domain.request import EvaluationRequest, OperatorRef, Opponent, SourceRef
from harness.domain.samples import Samples
from harness.domain.vocabulary import Backend, Purpose, Role
from harness.evaluation import sandbox
from harness.evaluation.run import Run
from harness.evaluation.timing.comparison import Compared, compare
from harness.operators import registry
from harness.operators.base import ShapePoint

SPEC = registry.get("rms_norm")
ROLE = str(Role.BASELINE)


@dataclass(frozen=True, slots=True)
class Measured:
    """One session: the kernel with extra rows is the candidate, the one without them opponent and A/A control."""

    compared: Compared
    samples: Samples
    longer: bool
    seconds: float


class Place(Protocol):
    """A clock. ``rows`` of the shape that it measures."""

    point: ShapePoint

    @property
    def facts(self) -> dict[str, Any]:
        """Hardware, versions and settings that make two series comparable."""
        ...

    def session(self, extra: int) -> Measured:
        """One full session, a longer one where it earns that, as in an evaluation."""
        ...


def point_of(backend: Backend, label: str | None) -> ShapePoint:
    """A measured shape of the operator; the one with most rows by default."""
    points = SPEC.workloads["llm"].shapes[backend]
    if label is None:
        return max(points, key=lambda point: point.dims["rows"])
    found = next((point for point in points if point.label == label), None)
    if found is None:
        raise SystemExit(f"{SPEC.name} has no shape '{label}': {', '.join(point.label for point in points)}.")
    return found


class Cpu:
    """The recheck stage itself, on a workload of one shape."""

    packages = ("numba", "llvmlite", "numpy", "torch")

    def __init__(self, label: str | None) -> None:
        from harness.hardware.detect import hardware_name

        self.point, self._hardware = point_of(Backend.NUMBA, label), hardware_name()

    @property
    def facts(self) -> dict[str, Any]:
        """See ``Place``."""
        from harness.evaluation.timing import stages

        return {"hardware": self._hardware, "shape": self.point.label, "rounds": stages.ROUNDS, "pairs": stages.SWEEPS}

    def session(self, extra: int) -> Measured:
        """See ``Place``."""
        from harness.evaluation.timing import stages

        mine, other = slowed.source("cpu", extra), slowed.source("cpu", 0)
        goal = Goal(operator=SPEC.name, backend=Backend.NUMBA, hardware=self._hardware, workload="llm")
        request = EvaluationRequest(
            job=uuid.uuid4().hex, nonce=os.urandom(8).hex(), purpose=Purpose.PROBE,
            operator=OperatorRef(SPEC.name, SPEC.version), backend=Backend.NUMBA, hardware=self._hardware,
            workload="llm", goal=goal, candidate=SourceRef(digest_source(mine), mine),
            against=(Opponent(Role.BASELINE, digest_source(other), other),),
        )
        workload = replace(SPEC.workloads["llm"], shapes={Backend.NUMBA: (replace(self.point, weight=1.0),)})
        run = Run(request=request, spec=SPEC, workload=workload, open_workers=sandbox.opener,
                  progress=lambda *_: None)
        began = time.monotonic()
        stages.recheck(run)
        assert run.samples is not None and run.timing is not None
        return Measured(compare(run.samples, ROLE), run.samples, run.timing.longer, time.monotonic() - began)


class Gpu:
    """``measure`` of the device clock, on launchers that serve a few sessions each."""

    packages = ("triton", "torch")

    def __init__(self, label: str | None, *, rounds: int = 5, pairs: int = 20, sessions_per_launcher: int = 10) -> None:
        from harness.backends.triton.targets import find_target
        from harness.evaluation.timing.device.shape import Shape
        from harness.hardware.gpu import gpu_name

        name = gpu_name()
        if name is None:
            raise SystemExit("This host has no GPU that kernels can be launched on. Run the series with --place cpu.")
        self.point, self._hardware, self._target = point_of(Backend.TRITON, label), name, find_target(name)
        self._rounds, self._pairs, self._most = rounds, pairs, sessions_per_launcher
        self._calls: dict[int, Any] = {}
        self._device, self._served = None, 0
        self._source = random.Random(secrets.randbits(64))
        self._dtype = SPEC.workloads["llm"].dtypes[Backend.TRITON]
        self._shape = Shape(SPEC, self.point, dtype=self._dtype, regimes=SPEC.workloads["llm"].regimes,
                            seed=secrets.randbits(128), source=self._source, stage="trust")

    @property
    def facts(self) -> dict[str, Any]:
        """See ``Place``."""
        from harness.hardware.detect import environment

        found = environment(Backend.TRITON, self._hardware)
        return {"hardware": self._hardware, "gpu": found.gpu, "driver": found.driver, "class": found.class_,
                "shape": self.point.label, "dtype": self._dtype, "rounds": self._rounds, "pairs": self._pairs}

    def session(self, extra: int) -> Measured:
        """See ``Place``."""
        sides = {"candidate": self._call(extra), ROLE: self._call(0)}
        began = time.monotonic()
        samples = self._measure(sides)
        compared = compare(samples, ROLE)
        longer = compared.promising
        if longer:
            samples = joined(samples, self._measure(sides))
            compared = compare(samples, ROLE)
        return Measured(compared, samples, longer, time.monotonic() - began)

    def close(self) -> None:
        """End the launcher."""
        if self._device is not None:
            self._device.close()
            self._device = None

    def _measure(self, sides: dict[str, Any]) -> Samples:
        from harness.backends.triton.launcher.process import open_device
        from harness.evaluation.timing.device.session import measure
        from harness.hardware import exclusive

        if self._device is None or self._served >= self._most:
            self.close()
            self._device, self._served = open_device(), 0
        self._served += 1
        with exclusive.device(self._hardware, 600.0):
            return measure(self._device, SPEC, self.point, sides, rounds=self._rounds, pairs=self._pairs,
                           workload=SPEC.workloads["llm"], dtype=self._dtype, shape=self._shape, source=self._source)

    def _call(self, extra: int) -> Any:
        """Plan and binaries of one kernel, recorded and compiled on first use."""
        if extra not in self._calls:
            self._calls[extra] = compiled_call(slowed.source("gpu", extra), self.point, self._dtype, self._target)
        return self._calls[extra]


def compiled_call(source: str, point: ShapePoint, dtype: str, target: Any, spec: Any = SPEC) -> Any:
    """One kernel's launch plan for one shape, recorded in the sandbox, and its binaries from the compile process."""
    from harness.backends.triton import planning
    from harness.backends.triton.compiler.binaries import binaries_of
    from harness.backends.triton.compiler.process import CompilerProcess

    worker: Any = sandbox.opener("triton-plan").open(deadline_s=60.0, options={"target": target.name})
    try:
        defaults = {attribute.name: attribute.default for attribute in spec.attributes}
        (plan,) = planning.record_plans(worker, source, spec.arguments, [point], dtype, target, defaults)
    finally:
        worker.close()
    if plan.refusals:
        raise SystemExit(f"The kernel cannot be recorded: {plan.refusals[0].text}")
    (binaries,) = binaries_of([plan], CompilerProcess(target))
    return plan, binaries


def joined(first: Samples, second: Samples) -> Samples:
    """The rounds of both, shape by shape."""
    return Samples(tuple(
        replace(a, versus={role: a.versus[role] + b.versus[role] for role in a.versus}, aa=a.aa + b.aa,
                mhz=a.mhz + b.mhz, disturbed=a.disturbed + b.disturbed)
        for a, b in zip(first.shapes, second.shapes, strict=True)
    ))


@contextlib.contextmanager
def place_of(name: str, label: str | None) -> Iterator[Cpu | Gpu]:
    """The clock called ``name``; everything it started ends with the context."""
    place = Cpu(label) if name == "cpu" else Gpu(label)
    try:
        yield place
    finally:
        if isinstance(place, Gpu):
            place.close()
        sandbox.close_all()
