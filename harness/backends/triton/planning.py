"""Records plans of a candidate in the sandbox: one worker, one import, one ``record`` request per shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from harness.backends.triton.check import PlanForged, read_plan
from harness.backends.triton.targets import Target
from harness.domain.plan import LaunchPlan
from harness.operators.base import Argument, ShapePoint


class PlanWorker(Protocol):
    """What recording needs of a sandbox worker."""

    def load(self, source: str) -> Any:
        """Import the candidate."""
        ...

    def ask(self, document: dict[str, Any], *, deadline_s: float | None = None) -> dict[str, Any]:
        """One request and its answer."""
        ...


def argument_documents(arguments: Sequence[Argument], dims: Mapping[str, int], dtype: str) -> list[dict[str, Any]]:
    """Dense arguments of the given sizes; ``dtype`` for those that do not fix their own."""
    documents = []
    for argument in arguments:
        shape = [int(dims[name]) for name in argument.dims]
        strides: list[int] = []
        step = 1
        for size in reversed(shape):
            strides.insert(0, step)
            step *= size
        documents.append({"name": argument.name, "kind": argument.kind, "dtype": argument.dtype or dtype,
                          "shape": shape, "strides": strides, "offset": 0})
    return documents


def record_plans(
    worker: PlanWorker, source: str, arguments: Sequence[Argument], points: Sequence[ShapePoint], dtype: str,
    target: Target, attributes: Mapping[str, float], *, progress: Callable[[int, str], None] | None = None,
) -> list[LaunchPlan]:
    """One validated plan per shape, refusals included. ``attributes`` are defaults that a shape may override.

    Raises:
        CandidateFault: from the worker.
        PlanForged: an answer that no honest recorder gives.
    """
    worker.load(source)
    plans = []
    for number, point in enumerate(points):
        if progress is not None:
            progress(number, f"recording {point.label}")
        documents = argument_documents(arguments, point.dims, dtype)
        answer = worker.ask({"op": "record", "arguments": documents, "attributes": {**attributes, **point.attributes}})
        plans.append(read_plan(answer.get("plan"), documents, target.label))
        if plans[-1].refusals:
            break
    return plans


def scratch_bytes(plan: LaunchPlan) -> int:
    """Bytes of device memory a call needs beside its arguments."""
    return sum(buffer.bytes for buffer in plan.buffers if buffer.kind in ("scratch", "global_scratch"))


def argument_bytes(plan: LaunchPlan) -> int:
    """Bytes of inputs and outputs."""
    return sum(buffer.bytes for buffer in plan.buffers if buffer.kind in ("input", "output"))


__all__ = ["PlanForged", "argument_bytes", "argument_documents", "record_plans", "scratch_bytes"]
