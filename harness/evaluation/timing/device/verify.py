"""What timed samples left, verified after the session: some of the kept blocks, chosen only now, against the oracle.

The judge computes the contents that the device renewed; where a kept stretch of an input does not have the very same
bits, nothing is concluded about the candidate.

How many are verified depends on the sizes of a shape alone, so that their cost is known beforehand: of each shape as
many samples, two to six, as ``BUDGET`` elements of inputs allow (a row of a long cache is larger: two samples then,
one row each). On one core that is about a second per shape at most, and several are verified at a time. A kernel that
errs in every timed call is found by the first of them. One that errs in a share f of its calls escapes with
(1 - f)^n, n being the samples of all shapes, 6 to 18 in a recheck and one a shape in a screening: f = 1/2 in one of 64
at worst, f = 1/10 in half of the cases; each of them was worth at most its own share of the calls. One that leaves out
a share of its rows alone escapes as easily; that is what the comparison of all elements on the device is for
(``apart``). What is verified here does not depend on the other side.
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import torch

from harness.backends.triton.launcher.requests import Keep, RoundRequest, RoundResult, Sweep
from harness.domain.errors import InfrastructureError
from harness.domain.verdict import Reason
from harness.domain.vocabulary import Outcome, Stage
from harness.evaluation.buffers import dtype_of
from harness.evaluation.judge.compare import compare
from harness.evaluation.judge.oracle import expect
from harness.evaluation.judge.rows import shown_block, whole_index
from harness.evaluation.run import Refused
from harness.evaluation.timing.device.contents import Stretch, renewed, same_bits
from harness.evaluation.timing.device.problem import problem_of, row_elements, stretches_of, untouched
from harness.evaluation.timing.device.shape import Shape
from harness.operators.implementation import Tensors

LEAST_VERIFIED, MOST_VERIFIED = 2, 6
BUDGET = 1 << 23
"""Elements of inputs, about, that the oracle looks at for one shape of one stage."""
THREADS = 8


@dataclass(frozen=True, slots=True)
class Left:
    """What the candidate left of one timed sample: the blocks kept and the bytes in them."""

    shape: Shape
    sweep: Sweep
    kept: tuple[bytes, ...]


def left_by(shape: Shape, request: RoundRequest, result: RoundResult) -> list[Left]:
    """The samples of a round of which something was kept.

    Raises:
        InfrastructureError: the launcher brought other blocks than it was asked for.
    """
    found = []
    for sweep, kept in zip(request.sweeps, result.kept, strict=True):
        if [len(block) for block in kept] != [keep.count for keep in sweep.keeps]:
            raise InfrastructureError("The launcher did not bring back the blocks that it was asked to keep.")
        if sweep.keeps:
            found.append(Left(shape, sweep, kept))
    return found


def choose(samples: Sequence[Left], source: random.Random, least: int = LEAST_VERIFIED) -> list[tuple[Left, float]]:
    """Which of ``samples``, all of one shape, are verified, at least ``least`` where there are as many, and where in
    them: a place in [0, 1) for large rows."""
    if not samples:
        return []
    cost = row_elements(samples[0].shape)
    wanted = max(least, min(MOST_VERIFIED, BUDGET // max(cost, 1)))
    return [(left, source.random()) for left in source.sample(list(samples), min(wanted, len(samples)))]


def verify(chosen: Sequence[tuple[Left, float]], table: torch.Tensor, stage: Stage,
           relative: float | None = None) -> None:
    """Verify samples, several at a time. ``relative`` is a goal's own tolerance.

    Raises:
        Refused: a timed call left a wrong result.
        InfrastructureError: the device's inputs are not those that the judge computes.
        InvalidReference: the reference itself fails.
    """
    with ThreadPoolExecutor(max(1, min(THREADS, len(os.sched_getaffinity(0))))) as pool:
        found = list(pool.map(lambda one: _reasons(one[0], table, stage, one[1], relative), chosen))
    for (left, _), reasons in zip(chosen, found, strict=True):
        if reasons:
            label = left.shape.label
            text = (f"A timed call on {label} left a wrong result, although the kernel passed the correctness stage: "
                    "it does not do the same work when it is timed.")
            raise Refused(Outcome.REWARD_HACK, Reason("timed_output_wrong", stage, text, case=label), *reasons[:1])


def _reasons(left: Left, table: torch.Tensor, stage: Stage, place: float, relative: float | None) -> list[Reason]:
    shape, sweep = left.shape, left.sweep
    slot = sweep.keeps[0].slot
    stretches = stretches_of(shape, sweep.starts[sweep.slots.index(slot)])
    blocks = {keep.output: (keep, data) for keep, data in zip(sweep.keeps, left.kept, strict=True)}
    for item in shape.renewed:
        _check_input(item.name, shape, *blocks[item.name], stretches[item.name], table)
    rows, block, got = _outputs(shape, blocks)
    rows, got = _narrowed(shape, rows, got, place) if block is None else (rows, got)
    dims, inputs = problem_of(shape, rows, stretches, table, block)
    answers = expect(shape.spec, dims, inputs, shape.attributes, shape.dtype, relative)
    reasons = []
    for argument in shape.spec.outputs:
        values = got[argument.name]
        found = compare(argument.name, argument.dims, values, untouched(values, sweep.poison),
                        answers[argument.name]).finding
        if found is not None:
            shown = shown_block(shape.spec, shape.point.dims, block)
            index = whole_index(found.index, rows.start, shown)
            where = f"row {rows.start}" + (f", {argument.dims[1]} {shown.start}" if shown is not None else "")
            text = f"Sample of {shape.label} from {where} on: {found.text}"
            reasons.append(Reason(found.code, stage, text, case=shape.label, index=index, got=found.got,
                                  expected=found.expected, bound=found.bound))
    return reasons


def _check_input(name: str, shape: Shape, keep: Keep, data: bytes, stretch: Stretch, table: torch.Tensor) -> None:
    base = shape.inputs[name].flatten()
    width = base.element_size()
    mine = renewed(base, stretch, table, keep.offset // width, (keep.offset + keep.count) // width)
    there = torch.frombuffer(bytearray(data), dtype=base.dtype)
    if not same_bits(mine, there):
        raise InfrastructureError(
            f"Input '{name}' of a timed call on {shape.label} did not hold on the device what the judge computed for "
            "it. Nothing was concluded about the candidate; evaluate again, and check the device if it comes back."
        )


def _outputs(
    shape: Shape, blocks: dict[str, tuple[Keep, bytes]]
) -> tuple[range, range | None, Tensors]:
    """The rows kept, or the one row and its block of indices along the inner dimension, and every output's values
    there."""
    got: Tensors = {}
    rows, block = range(0), None
    inside = shape.point.dims[shape.inner] if shape.inner else 1
    for argument in shape.spec.outputs:
        keep, data = blocks[argument.name]
        whole = [shape.point.dims[dim] for dim in argument.dims]
        values = torch.frombuffer(bytearray(data), dtype=dtype_of(argument.dtype or shape.dtype))
        each = math.prod(whole[1:]) * values.element_size()
        rows = range(keep.offset // each, -(-(keep.offset + keep.count) // each))
        if keep.count % each:
            first, count = (size * inside // each for size in (keep.offset % each, keep.count))
            block = range(first, first + count)
        shown = shown_block(shape.spec, shape.point.dims, block)
        got[argument.name] = values.view(len(rows), *(whole[1:] if shown is None else (len(shown), *whole[2:])))
    return rows, block, got


def _narrowed(shape: Shape, rows: range, got: Tensors, place: float) -> tuple[range, Tensors]:
    """Fewer of the kept rows where a row is a large problem of its own; ``place`` in [0, 1) says which."""
    count = max(1, min(len(rows), BUDGET // LEAST_VERIFIED // max(row_elements(shape), 1)))
    first = int(place * (len(rows) - count + 1))
    if not shape.rows or count == len(rows):
        return rows, got
    return rows[first : first + count], {name: values[first : first + count] for name, values in got.items()}
