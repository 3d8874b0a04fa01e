"""Records plans of a candidate in the sandbox: one worker, one import, one ``record`` request per shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from harness.backends.triton.check import ITEM_BYTES, PlanForged, read_plan
from harness.backends.triton.targets import Target
from harness.domain.plan import LaunchPlan
from harness.evaluation.ports import Lent
from harness.operators.base import Argument, ShapePoint

ALIGNMENT = 512
"""Bytes: what the recorder's invented base addresses are aligned to, and no more; a launcher binds the same way."""


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


def lent_documents(lent: Sequence[Lent]) -> list[dict[str, Any]]:
    """The arrays of one call as the recorder is told of them.

    A memory file is placed at a multiple of ``ALIGNMENT`` bytes, so an array's address modulo that is its offset in
    the file modulo that. The recorder gets this shift and nothing else of where the array lies: bands stay unknown.

    Raises:
        ValueError: an array does not start at a whole element of its file.
    """
    documents = []
    for item in lent:
        size = ITEM_BYTES[item.dtype]
        shift = item.offset % ALIGNMENT
        if shift % size:
            raise ValueError(f"array '{item.name}' starts {shift} bytes off, no multiple of its {size}-byte elements")
        documents.append({"name": item.name, "kind": item.kind, "dtype": item.dtype, "shape": list(item.shape),
                          "strides": list(item.strides), "offset": shift // size})
    return documents


def record_one(
    worker: PlanWorker, arguments: Sequence[Mapping[str, Any]], attributes: Mapping[str, float], target: Target, *,
    deadline_s: float | None = None,
) -> LaunchPlan:
    """One validated plan, refusals included, of a candidate that ``worker`` has loaded.

    ``arguments`` are documents in signature order: ``name``, ``kind`` (input, output), ``dtype``, ``shape``,
    ``strides`` and ``offset``, both in elements; the plan's buffer starts ``offset`` elements before the array and is
    aligned to ``ALIGNMENT`` bytes. ``attributes`` are those of this call, defaults included. A worker records any
    number of calls; what Triton compiled for one serves the next.

    Raises:
        CandidateFault: from the worker.
        PlanForged: an answer that no honest recorder gives.
    """
    documents = [dict(argument) for argument in arguments]
    request = {"op": "record", "arguments": documents, "attributes": dict(attributes)}
    answer = worker.ask(request, deadline_s=deadline_s)
    return read_plan(answer.get("plan"), documents, target.label)


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
        plans.append(record_one(worker, documents, {**attributes, **point.attributes}, target))
        if plans[-1].refusals:
            break
    return plans


def scratch_bytes(plan: LaunchPlan) -> int:
    """Bytes of device memory a call needs beside its arguments."""
    return sum(buffer.bytes for buffer in plan.buffers if buffer.kind in ("scratch", "global_scratch"))


def argument_bytes(plan: LaunchPlan) -> int:
    """Bytes of inputs and outputs."""
    return sum(buffer.bytes for buffer in plan.buffers if buffer.kind in ("input", "output"))


__all__ = ["PlanForged", "argument_bytes", "argument_documents", "lent_documents", "record_one", "record_plans",
           "scratch_bytes"]
