"""Some rows of a measured shape as a problem of their own: what the oracle is asked about, instead of the whole."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch

from harness.evaluation.timing.device.contents import Stretch, renewed
from harness.evaluation.timing.device.shape import Shape
from harness.operators.implementation import Tensors


def problem_of(shape: Shape, rows: range, stretches: Mapping[str, Stretch] | None = None,
               table: torch.Tensor | None = None) -> tuple[dict[str, int], Tensors]:
    """Dimensions and inputs of the ``rows`` (all of them where the operator has no independent rows).

    First contents, or, with the ``stretches`` of the renewed inputs in the factors' ``table``, those of one sample.
    """
    inputs: Tensors = {}
    for argument in shape.spec.inputs:
        base = shape.inputs[argument.name]
        first, last = (rows.start, rows.stop) if argument.dims[0] == shape.rows else (0, base.shape[0])
        part = base[first:last]
        if stretches is not None and table is not None and argument.name in stretches:
            each = base[0].numel() if base.shape[0] else 0
            part = renewed(base.flatten(), stretches[argument.name], table, first * each, last * each).view(part.shape)
        inputs[argument.name] = part
    dims = dict(shape.point.dims)
    if shape.rows:
        dims[shape.rows] = len(rows)
    return dims, inputs


def stretches_of(shape: Shape, start: int) -> dict[str, Stretch]:
    """Where the factors of every renewed input begin for a slot whose start was drawn as ``start``."""
    return dict(zip((item.name for item in shape.renewed), shape.starts.stretches(start), strict=True))


def row_elements(shape: Shape) -> int:
    """Elements of renewed inputs that one row has; all of them where the operator has no independent rows."""
    rows = shape.point.dims[shape.rows] if shape.rows else 1
    return sum(math.prod(item.shape) // rows for item in shape.renewed)


def untouched(values: torch.Tensor, poison: int) -> torch.Tensor:
    """Which elements still hold the sweep's sixteen bits, repeated."""
    words = values.view(torch.int16).view(*values.shape, -1)
    signed = poison - (1 << 16) if poison >= 1 << 15 else poison
    return (words == signed).all(-1)
