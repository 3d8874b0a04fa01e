"""The stage ``profile``: after the last timed round, for candidates whose request asks for it.

Nothing here decides about a candidate: whatever goes wrong is said in the profile and the verdict stands. Where the
profiler's run agrees with the clock, the evidence of the times is one level better (``confirm``). The time is not
charged to the candidate's deadline.
"""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from harness.backends.triton.device.holding import Holding
from harness.backends.triton.stages import planned_shapes
from harness.domain.codec import to_document
from harness.domain.errors import InfrastructureError
from harness.domain.plan import LaunchResources
from harness.domain.profile import CounterProfile, ProfileSource, ShapeCounters
from harness.domain.verdict import Reason
from harness.domain.vocabulary import Stage
from harness.evaluation.ports import Lent
from harness.evaluation.profile.by_clock import shape_by_clock
from harness.evaluation.profile.confirm import confirmed
from harness.evaluation.profile.counters import launch_counters, shape_counters
from harness.evaluation.profile.tool import NoCounters, Report, profiled
from harness.evaluation.run import Run
from harness.evaluation.timing.device.bench import close_bench
from harness.evaluation.timing.device.session import Call
from harness.evaluation.timing.sides import CANDIDATE

MOST_SHAPES = 4
"""Shapes that are profiled, the heaviest ones."""


def profile(run: Run, profiler: Callable[[dict[str, Any]], Report] = profiled) -> None:
    """Fill ``run.profile``: counters where they may be read, else the launcher's clock with the reason. Never raises
    because of a profiler."""
    began = time.monotonic()
    run.progress(Stage.PROFILE, 0, 1, "repeating the plans under the profiler")
    labels = chosen(run)
    tool: str | None = None
    why: str | None = None
    try:
        report = _counted(run, labels, profiler)
        source, tool, shapes = ProfileSource.COUNTERS, report.tool, by_counters(run, labels, report)
    except (NoCounters, InfrastructureError, OSError) as error:
        source, why = ProfileSource.CLOCK, str(error).rstrip(".")
        shapes = _by_clock(run, labels)
        text = f"The profile has no hardware counters: {why}. The launcher's clock and the compiler's figures stand in."
        run.notes.append(Reason("no_counters", Stage.PROFILE, text))
    finally:
        close_bench(run)
        run.deadline += time.monotonic() - began
    run.profile = CounterProfile(source, shapes, tool, why, round(time.monotonic() - began, 2))
    if run.timing is not None:
        evidence, differences = confirmed(run.timing, run.profile)
        run.timing = replace(run.timing, evidence=evidence)
        run.notes += differences
    run.progress(Stage.PROFILE, 1, 1, shapes[0].text if shapes else "nothing was profiled")


def chosen(run: Run) -> list[str]:
    """Labels of the shapes to profile, the heaviest first."""
    return [point.label for point in sorted(planned_shapes(run), key=lambda point: -point.weight)[:MOST_SHAPES]]


def request_of(calls: list[tuple[Call, tuple[Lent, ...]]]) -> dict[str, Any]:
    """What ``launcher.replay`` is asked. Inputs stay in the judge's memory files, which it opens by their paths."""
    return {"index": 0, "calls": [
        {"document": {name: value for name, value in to_document(plan).items() if name != "irs"},
         "binaries": [{"symbol": b.symbol, "cubin": base64.b64encode(b.cubin).decode("ascii"),
                       "num_warps": b.num_warps, "num_ctas": b.num_ctas, "shared_bytes": b.shared_bytes}
                      for b in binaries],
         "arrays": [_array(item) for item in lent]}
        for (plan, binaries), lent in calls]}


def _array(item: Lent) -> dict[str, Any]:
    return {"name": item.name, "kind": item.kind, "dtype": item.dtype, "shape": list(item.shape),
            "strides": list(item.strides), "offset": item.offset, "nbytes": item.nbytes,
            "path": f"/proc/{os.getpid()}/fd/{item.fd}"}


def _counted(run: Run, labels: Sequence[str], profiler: Callable[[dict[str, Any]], Report]) -> Report:
    """The profiler's report on the shapes ``labels``, the device held meanwhile."""
    assert run.bench is not None
    calls = run.bench.kernels[CANDIDATE].calls
    request = request_of([(calls[label], run.bench.shapes[label].lending.lent) for label in labels])
    holding = Holding(run)
    holding.reserve()
    try:
        return profiler(request)
    finally:
        holding.release()


def by_counters(run: Run, labels: Sequence[str], report: Report) -> tuple[ShapeCounters, ...]:
    """The report's rows dealt out to shapes: they come in the order of the calls.

    Raises:
        NoCounters: they are not those that the plans launch.
    """
    rows, found = list(report.rows), []
    for label, launches in ((label, _launches(run)[label]) for label in labels):
        mine, rows = rows[: len(launches)], rows[len(launches) :]
        for row, launch in zip(mine, launches, strict=False):
            if row.function != launch.function:
                raise NoCounters("failed", f"{report.tool} reports '{row.function}' where '{launch.function}' ran")
        if len(mine) != len(launches):
            raise NoCounters("failed", f"{report.tool} reports fewer launches than {label} makes")
        found.append(shape_counters(label, tuple(map(launch_counters, mine, launches))))
    return tuple(found)


def _by_clock(run: Run, labels: Sequence[str]) -> tuple[ShapeCounters, ...]:
    timed = {shape.shape: shape for shape in run.timing.shapes} if run.timing else {}
    return tuple(shape_by_clock(timed[label], _launches(run)[label]) for label in labels if label in timed)


def _launches(run: Run) -> dict[str, tuple[LaunchResources, ...]]:
    """What the compiler says of each shape's launches, by label."""
    return {point.label: compiled.launches for point, compiled in zip(planned_shapes(run), run.compiled, strict=True)}
