"""How far apart two sides' outputs may lie before the oracle is asked about them.

The device compares every flushed sample of the candidate, whole, with the other side's from the same contents
(``RoundRequest.compared``). What is looked for is missing work, not rounding. Elements are apart beyond

    relative * max(|a|, |b|) + absolute

``relative`` is some roundings of the dtype. ``absolute`` is chosen so that, on rows that the judge knows, whatever is
apart lies further than twice the oracle's own bound: then one of the two sides is outside of it for certain, and the
first element apart decides, whatever else lies behind it. The rows' plain size would not do: where some rows are a
thousand times smaller than others, a share of that size hides that a small row is missing.

Few rows of a large problem are known. Where the oracle accepts both sides of an element that is apart, its bound is
learnt (``Shape.widen``) and the next round asks no more about the like.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import torch

from harness.evaluation.judge.allowance import allowance_of
from harness.evaluation.timing.device.problem import problem_of, row_elements
from harness.evaluation.timing.device.shape import Shape
from harness.operators.implementation import load_implementation, reference_and_magnitude

RELATIVE = {"bfloat16": 2.0**-5, "float16": 2.0**-7, "float32": 1e-3}
SIDES = 2.0
"""Both sides may use their whole bound, in opposite directions."""
LEAST_ROWS, MOST_ROWS = 3, 64
BUDGET = 1 << 20
"""Elements of inputs, about, that are looked at for one shape; a row of a long cache has more."""
THREADS = 8


def settle(shapes: Iterable[Shape], relative: float | None = None) -> None:
    """Set ``near`` of every shape that has none. ``relative`` is a goal's own tolerance. No device is needed."""
    wanted = [shape for shape in shapes if shape.near is None]
    with ThreadPoolExecutor(max(1, min(THREADS, len(os.sched_getaffinity(0))))) as pool:
        jobs = [(shape, [pool.submit(_absolute, shape, row, block, relative) for row, block in known_rows(shape)])
                for shape in wanted]
        for shape, rows in jobs:
            shape.near = (relative_of(shape), max(row.result() for row in rows))


def relative_of(shape: Shape) -> float:
    """The relative share for the outputs of ``shape``: nothing where values are only chosen, else that of the coarsest
    of their dtypes. Integers are compared bit for bit whatever it is."""
    if shape.spec.tolerances[shape.dtype].exact:
        return 0.0
    return max(RELATIVE.get(argument.dtype or shape.dtype, 0.0) for argument in shape.spec.outputs)


def known_rows(shape: Shape) -> list[tuple[range, range | None]]:
    """Single rows spread over the shape, or single indices of rows where these are large and have independent ones;
    everything at once where the operator has no independent rows."""
    if not shape.rows:
        return [(range(next(iter(shape.inputs.values())).shape[0]), None)]
    rows, each = shape.point.dims[shape.rows], max(1, row_elements(shape))
    inside = shape.point.dims[shape.inner] if shape.inner and each > BUDGET // LEAST_ROWS else 1
    total = rows * inside
    count = min(total, max(LEAST_ROWS, min(MOST_ROWS, BUDGET * inside // each)))
    found = []
    for place in sorted({number * total // count for number in range(count)}):
        row, index = divmod(place, inside)
        found.append((range(row, row + 1), range(index, index + 1) if inside > 1 else None))
    return found


def absolute_for(values: torch.Tensor, bound: torch.Tensor, relative: float) -> float:
    """The least absolute share with which nothing inside ``bound`` of ``values`` on both sides is apart; 0 where the
    relative one does."""
    room = SIDES * bound - relative * values.abs()
    room = room[torch.isfinite(room)]
    return max(0.0, float(room.max())) if room.numel() else 0.0


def _absolute(shape: Shape, rows: range, block: range | None, relative: float | None) -> float:
    dims, inputs = problem_of(shape, rows, block=block)
    implementation, attributes = load_implementation(shape.spec), shape.attributes
    reference, magnitudes = reference_and_magnitude(implementation, inputs, attributes)
    honest = implementation.honest(inputs, attributes)
    tolerance, length = shape.spec.tolerances[shape.dtype], shape.spec.reduction_length(dims)
    return max(
        absolute_for(values, allowance_of(values, honest[name], *magnitudes[name], tolerance, length, relative).bound()
                     .expand_as(values), relative_of(shape))
        for name, values in reference.items())
