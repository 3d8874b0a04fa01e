"""Some rows of a measured shape as a problem of their own: what the oracle is asked about, instead of the whole."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch

from harness.evaluation.buffers import dtype_name
from harness.evaluation.judge.rows import cut_along, cut_dims, inner_axes
from harness.evaluation.poison import output_poison
from harness.evaluation.timing.device.contents import Stretch, renewed, renewed_within
from harness.evaluation.timing.device.shape import Shape
from harness.operators.implementation import Tensors


def problem_of(shape: Shape, rows: range, stretches: Mapping[str, Stretch] | None = None,
               table: torch.Tensor | None = None, block: range | None = None) -> tuple[dict[str, int], Tensors]:
    """Dimensions and inputs of the ``rows`` (all of them where the operator has no independent rows), or of a ``block``
    of indices of one row along the inner dimension.

    First contents, or, with the ``stretches`` of the renewed inputs in the factors' ``table``, those of one sample.
    """
    inputs: Tensors = {}
    moved = inner_axes(shape.spec, shape.point.dims)
    for argument in shape.spec.inputs:
        base = shape.inputs[argument.name]
        first, last = (rows.start, rows.stop) if argument.dims[0] == shape.rows else (0, base.shape[0])
        part = base[first:last]
        if stretches is not None and table is not None and argument.name in stretches:
            each, stretch = base[0].numel() if base.shape[0] else 0, stretches[argument.name]
            axis = next((place for place, dim in enumerate(argument.dims) if dim in moved), None)
            if block is not None and axis:
                times = moved[argument.dims[axis]]
                part = renewed_within(base, stretch, table, range(first, last), axis,
                                      range(block.start * times, block.stop * times))
            else:
                part = cut_along(renewed(base.flatten(), stretch, table, first * each, last * each).view(part.shape),
                                 argument.dims, moved, block)
        else:
            part = cut_along(part, argument.dims, moved, block)
        inputs[argument.name] = part
    dims = cut_dims(shape.point.dims, moved, block)
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
    """Which elements still hold what the sweep's ``poison`` put into an output of their dtype."""
    words = values.view(torch.int16).view(*values.shape, -1)
    return (words == output_poison(dtype_name(values.dtype), poison)).all(-1)
