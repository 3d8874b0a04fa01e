"""Builds configurations on CPU processes, many at a time: recorded in sandboxes, compiled behind the compiler's walls.

A job takes a batch of points: one sandbox process records all of them (they are one file that differs in PARAMS alone)
for the shapes of every bucket, one compile process compiles what they launch, equal kernels once. No device is touched.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

from harness.agents.autotune.space import Point
from harness.backends.triton import planning
from harness.backends.triton.check import PlanForged
from harness.backends.triton.compiler.binaries import binaries_of
from harness.backends.triton.compiler.compiled import CompileFailed, compile_plans
from harness.backends.triton.compiler.process import CompilerProcess, KernelSource
from harness.backends.triton.limits import exceeded
from harness.backends.triton.targets import Target
from harness.domain.goal import Limits
from harness.domain.plan import LaunchPlan
from harness.evaluation.ports import CandidateFault, WorkerOpener
from harness.search.configs import Built, Config, Space

BATCH = 12
"""Points of a job: a compile process takes about a second to start, and what it holds is lost if it dies."""
JOB_S = 300.0
RECORD_S, LEAST_RECORD_S, PATIENCE = 25.0, 5.0, 20.0
"""Seconds that recording one configuration may take at most, and at most so many times what the quickest one took (but
that many seconds at least): a kernel that compiles for so long spills or is unrolled out of all proportion."""
SPARED = 2
"""Cores left to the launcher and to the search itself, where there are more than four."""


def workers() -> int:
    """Jobs at a time on this machine."""
    cores = len(os.sched_getaffinity(0))
    return max(1, cores - SPARED if cores > 4 else cores - 1)


Wanted = tuple[Point, list[str]]
"""A point and the buckets that it is built for."""


class Farm:
    """Builds configurations of ``space`` for ``target``."""

    def __init__(self, space: Space, target: Target, opener: WorkerOpener, *, limits: Limits | None = None,
                 jobs: int | None = None, batch: int = BATCH) -> None:
        """``opener`` opens ``triton-plan`` workers; ``limits`` are the goal's."""
        self._space, self._target, self._opener = space, target, opener
        self._limits = limits or Limits()
        self._jobs, self._batch = jobs or workers(), max(1, batch)
        self._attributes = {attribute.name: attribute.default for attribute in space.spec.attributes}
        self._compilers = threading.local()
        self._quickest_s = RECORD_S
        self.compiler = ""
        self.busy_s = 0.0
        """Seconds that jobs took, all of them together."""

    def build(self, points: Sequence[Point], buckets: Sequence[str] | None = None,
              stop: Callable[[], bool] = lambda: False) -> Iterator[list[Built]]:
        """What became of every point in each of ``buckets`` (all of them by default), batch by batch as they get
        ready, in no particular order; what arithmetic rules out comes first. After ``stop`` says so no job begins.

        Raises:
            InfrastructureError: sandboxes or compile processes do not start here.
        """
        ruled: list[Built] = []
        wanted: dict[Point, list[str]] = {}
        for point in points:
            for bucket in buckets or self._space.buckets:
                text = self._space.ruled_out(Config(bucket, point), self._target.name)
                if text:
                    ruled.append(Built(Config(bucket, point), "arithmetic", text))
                else:
                    wanted.setdefault(point, []).append(bucket)
        if ruled:
            yield ruled
        open_ = list(wanted.items())
        batches = iter([open_[first : first + self._batch] for first in range(0, len(open_), self._batch)])
        with ThreadPoolExecutor(self._jobs) as pool:
            running: set[Future[list[Built]]] = set()
            while True:
                while len(running) < self._jobs and not stop():
                    batch = next(batches, None)
                    if batch is None:
                        break
                    running.add(pool.submit(self._job, batch))
                if not running:
                    return
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for job in done:
                    yield job.result()

    def _job(self, batch: Sequence[Wanted]) -> list[Built]:
        began = time.monotonic()
        recorded = self._record(batch)
        compiler = self._compiler()
        plans = [plan for found in recorded if not isinstance(found, str) for plan in found.values()]
        compiler.compile(_kernels(plans), deadline_s=JOB_S)  # all in one process; what follows finds them known
        built = []
        for (point, buckets), found in zip(batch, recorded, strict=True):
            for bucket in buckets:
                config = Config(bucket, point)
                built.append(Built(config, "recording", found) if isinstance(found, str)
                             else self._built(config, found, compiler))
        self.compiler = compiler.compiler
        self.busy_s += time.monotonic() - began
        return built

    def _compiler(self) -> CompilerProcess:
        if not hasattr(self._compilers, "own"):
            self._compilers.own = CompilerProcess(self._target, processes=1)
        own: CompilerProcess = self._compilers.own
        return own

    def _record(self, batch: Sequence[Wanted]) -> list[dict[str, LaunchPlan] | str]:
        """Plans of every point by shape, or why there are none. A process that a point ended is replaced for the next
        one."""
        space = self._space
        worker: Any = None
        found: list[dict[str, LaunchPlan] | str] = []
        try:
            for point, buckets in batch:
                shapes = [shape for bucket in buckets for shape in space.buckets[bucket]]
                if worker is None:
                    worker = self._opener.open(deadline_s=self._patience(), options={"target": self._target.name})
                began = time.monotonic()
                try:
                    plans = planning.record_plans(worker, space.text_of(point), space.spec.arguments, shapes,
                                                  space.dtype, self._target, self._attributes)
                except (CandidateFault, PlanForged) as fault:
                    found.append(str(fault))
                    worker.close()
                    worker = None
                    continue
                self._quickest_s = min(self._quickest_s, time.monotonic() - began)
                refusals = [refusal.text for plan in plans for refusal in plan.refusals]
                found.append(refusals[0] if refusals
                             else {shape.label: plan for shape, plan in zip(shapes, plans, strict=True)})
        finally:
            if worker is not None:
                worker.close()
        return found

    def _patience(self) -> float:
        """Seconds that one request to a recording process may take."""
        return min(RECORD_S, max(LEAST_RECORD_S, PATIENCE * self._quickest_s))

    def _built(self, config: Config, recorded: dict[str, LaunchPlan], compiler: CompilerProcess) -> Built:
        labels = [shape.label for shape in self._space.buckets[config.bucket]]
        plans = [recorded[label] for label in labels]
        try:
            compiled = compile_plans(plans, compiler, deadline_s=JOB_S)
            rows = binaries_of(plans, compiler, deadline_s=JOB_S)
        except CompileFailed as failed:
            kind = "resources" if failed.problem == "infeasible" else "compiling"
            return Built(config, kind, f"'{failed.function}': {failed.text}")
        launches = [launch for plan in compiled for launch in plan.launches]
        impossible, forbidden = exceeded(launches, plans, self._limits, self._target)
        problem = "resources" if impossible else "limits" if forbidden else ""
        return Built(
            config, problem, (impossible or forbidden)[0].text if problem else "",
            registers=max(launch.registers or 0 for launch in launches),
            spill_bytes=max(launch.spill_bytes or 0 for launch in launches),
            shared_bytes=max(launch.shared_bytes or 0 for launch in launches),
            occupancy=min((launch.occupancy for launch in launches if launch.occupancy is not None), default=None),
            calls={} if problem else {label: (plan, row) for label, plan, row in zip(labels, plans, rows, strict=True)})


def _kernels(plans: Sequence[LaunchPlan]) -> list[KernelSource]:
    """What the plans launch, each kernel once; a text that is missing is left to ``compile_plans`` to refuse."""
    found = {}
    for plan in plans:
        for step in plan.steps:
            launch = step.get("launch")
            text = (plan.irs or {}).get(launch["ir"]) if launch else None
            if launch and text is not None:
                found[launch["ir"], launch["kind"], repr(launch["options"])] = KernelSource(
                    text, launch["kind"], dict(launch["options"]))
    return list(found.values())
