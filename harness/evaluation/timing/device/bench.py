"""What the clock needs before it takes the device: every side's plans and binaries, and the contents of all shapes."""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from harness.backends.triton.compiler.binaries import binaries_of
from harness.backends.triton.compiler.process import compiler_for
from harness.backends.triton.device.holding import Holding
from harness.backends.triton.launcher.client import Device
from harness.backends.triton.stages import planned_shapes
from harness.backends.triton.targets import find_target
from harness.domain.vocabulary import Backend, Stage
from harness.evaluation.judge.bases import bases_of, close_bases
from harness.evaluation.judge.seeds import draw_seed
from harness.evaluation.run import Run
from harness.evaluation.timing.device import closeness
from harness.evaluation.timing.device.contents import Factors
from harness.evaluation.timing.device.opponents import opponent
from harness.evaluation.timing.device.session import Kernel, Session
from harness.evaluation.timing.device.shape import Shape, prepare
from harness.evaluation.timing.sides import AGAIN, CANDIDATE
from harness.evaluation.timing.stages import LineUp, line_up_of
from harness.hardware import nvml
from harness.operators.base import ShapePoint

COMPILE_S = 60.0


@dataclass
class Bench:
    """Kernels by side, shapes and factors of one evaluation, from ``benchmark`` to ``recheck``."""

    line_up: LineUp
    kernels: dict[str, Kernel]
    shapes: dict[str, Shape]
    factors: Factors
    source: random.Random
    look: Callable[[str], nvml.Reading | None] = nvml.read
    pause: Callable[[float], None] = time.sleep
    holding: Holding | None = None

    def held_for(self, run: Run) -> Holding:
        """The launcher of both stages and its lock; another one than judged, for it meets other kernels."""
        if self.holding is None:
            self.holding = Holding(run)
        return self.holding

    def session(self, run: Run, device: Device, stage: Stage) -> Session:
        """A session for one stage. The candidate's outputs are compared with those of the opponent that its time is
        compared with, which was verified when it was judged itself."""
        return Session(device, self.shapes, self.factors, stage=stage, source=self.source,
                       trusted=AGAIN if run.compared_role is None else self.line_up.control, relative=relative_of(run),
                       ensure_time=run.ensure_time, look=self.look, pause=self.pause)

    def close(self) -> None:
        """End the launcher and give the memory back; idempotent."""
        if self.holding is not None:
            self.holding.release()
        for shape in self.shapes.values():
            shape.close()
        self.factors.close()


def bench_of(run: Run) -> Bench:
    """The bench of ``run``, made now where there is none.

    Raises:
        InfrastructureError: an opponent cannot be recorded or compiled, which was verified before.
    """
    if run.bench is None:
        run.bench = _make(run)
    return run.bench


def relative_of(run: Run) -> float | None:
    """The goal's own tolerance, ``None`` where it leaves that to the operator."""
    override = run.request.goal.limits.tolerance
    return override.relative if override else None


def close_bench(run: Run) -> None:
    """Give the bench of ``run`` and its contents back, if there are any."""
    if run.bench is not None:
        run.bench.close()
        run.bench = None
    close_bases(run)


def _make(run: Run) -> Bench:
    if run.seed is None:
        run.seed = draw_seed()
    line_up, points = line_up_of(run), tuple(planned_shapes(run))
    bases, holding = bases_of(run, points), Holding(run)
    holding.warm()
    source = random.Random(secrets.randbits(64))  # orders and starts are not part of what a replay needs
    others = [side for side in line_up.sources if side != CANDIDATE]
    try:
        with ThreadPoolExecutor(1 + len(others)) as pool:
            made = {side: pool.submit(opponent, run, side, line_up.sources[side], points) for side in others}
            shapes = prepare(run.spec, points, dtype=run.workload.dtypes[Backend.TRITON], regimes=run.workload.regimes,
                             seed=run.seed, source=source, stage="clock", bases=bases)
            close = pool.submit(closeness.settle, shapes.values(), relative_of(run))
            kernels = {CANDIDATE: _candidate(run, points), **{side: one.result() for side, one in made.items()}}
            close.result()
            return Bench(line_up, kernels, shapes, Factors(run.seed, "clock"), source, holding=holding)
    except BaseException:
        holding.release()
        close_bases(run)
        raise


def _candidate(run: Run, points: Sequence[ShapePoint]) -> Kernel:
    """The plans that the stage ``plan`` recorded; their binaries are known to the compiler already."""
    rows = binaries_of(run.plans, compiler_for(find_target(run.target)), deadline_s=_patience(run))
    calls = {point.label: (plan, row) for point, plan, row in zip(points, run.plans, rows, strict=True)}
    return Kernel(calls, compile_s=run.compiled[0].seconds or 0.0)


def _patience(run: Run) -> float:
    return max(1.0, min(COMPILE_S, run.remaining_s))


