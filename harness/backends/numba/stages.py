"""The ``plan`` stage of numba: import and first compilation in the sandbox, before any seed exists."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

from harness.domain.vocabulary import Backend, Outcome, Stage
from harness.evaluation.ports import CandidateFault
from harness.operators.base import Case, OperatorSpec

COMPILE_S = 60.0


class PlanRun(Protocol):
    """What this stage needs of an evaluation in progress (``harness.evaluation.run.Run``)."""

    spec: OperatorSpec
    clocks: dict[str, Any]
    open_workers: Callable[[str], Any]
    progress: Callable[[Stage, int, int, str], None]

    @property
    def source(self) -> str:
        """The candidate's text."""
        ...

    @property
    def remaining_s(self) -> float:
        """Seconds left."""
        ...


def plan(run: PlanRun) -> None:
    """Import the candidate and compile it by one call on the smallest smoke case, on arrays of ones.

    Stores the judge's clock in ``run.clocks``: ``import_s`` and ``first_call_s``. The process is thrown away.

    Raises:
        CandidateFault: import, compilation or that call failed.
    """
    run.progress(Stage.PLAN, 0, 1, "importing and compiling")
    try:
        run.clocks["import_s"], run.clocks["first_call_s"] = _first_call(run, bounds_checks=False)
    except CandidateFault as fault:
        _explain(run, fault)
        raise
    run.progress(Stage.PLAN, 1, 1, "compiled")


def _first_call(run: PlanRun, *, bounds_checks: bool) -> tuple[float, float]:
    """Seconds of the import and of the compiling call."""
    deadline = min(COMPILE_S, run.remaining_s)
    worker: Any = run.open_workers(str(Backend.NUMBA)).open(deadline_s=deadline, bounds_checks=bounds_checks)
    try:
        imported = worker.load(run.source).seconds
        began = time.perf_counter()
        worker.ask(compile_request(run.spec, smallest_case(run.spec)))
        return imported, time.perf_counter() - began
    finally:
        worker.close()


def _explain(run: PlanRun, fault: CandidateFault) -> None:
    """A store beyond an array shows here as whatever the damaged heap does next: compiled once more with bounds
    checks, it names itself."""
    if fault.fault.code != "crash":
        return
    try:
        _first_call(run, bounds_checks=True)
    except CandidateFault as checked:
        if checked.fault.outcome is Outcome.OUT_OF_BOUNDS:
            raise checked from fault


def smallest_case(spec: OperatorSpec) -> Case:
    """The dense case with the fewest elements, smoke cases first."""
    dense = [case for case in spec.cases if case.layout == "dense" and min(case.dims.values(), default=1) > 0]
    return min(dense, key=lambda case: (not case.smoke, sum(_elements(spec, case))))


def _elements(spec: OperatorSpec, case: Case) -> list[int]:
    sizes = []
    for argument in spec.arguments:
        count = 1
        for dim in argument.dims:
            count *= case.dims[dim]
        sizes.append(count)
    return sizes


def compile_request(spec: OperatorSpec, case: Case) -> dict[str, Any]:
    """The ``compile`` request for ``case``: shapes, dtypes and attributes in signature order."""
    arrays = [
        {"kind": a.kind, "shape": [case.dims[dim] for dim in a.dims], "dtype": a.dtype or "float32"}
        for a in spec.arguments
    ]
    attributes = {attribute.name: attribute.default for attribute in spec.attributes} | dict(case.attributes)
    return {"op": "compile", "arrays": arrays, "attributes": attributes}
