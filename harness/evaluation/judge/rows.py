"""Large outputs judged in blocks of rows that are chosen after the run.

A measured shape is too large for float64 everywhere. The first and the last block, random ones from the secret seed and
every suspicious row (never written, NaN or infinite) are cut out of inputs and outputs alike and judged by the usual
oracle and bound. A row is one index of the first dimension of the outputs; the inputs that share it are cut, the others
are passed whole, which is right because rows of an operator that declares ``row_dim`` do not depend on each other.

A row may be a large problem of its own (a long sequence). Where its indices along ``inner_dim`` are independent too, it
is cut along them as well: blocks of consecutive ones instead of the whole row, in every argument that has the dimension
or a multiple of it (``inner_axes``).
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise

import torch

from harness.domain.verdict import Bound, Reason
from harness.domain.vocabulary import Outcome, Stage
from harness.evaluation.judge.checking import lengths_of
from harness.evaluation.judge.compare import Compared, Finding, compare
from harness.evaluation.judge.lending import Collected
from harness.evaluation.judge.oracle import expect, library_errors
from harness.evaluation.judge.words import Lengths
from harness.operators.base import Dims, OperatorSpec
from harness.operators.implementation import Tensors

BLOCK = 8
"""Consecutive rows of a block: errors of a tile's edge show in neighbours."""
BUDGET = 1 << 22
"""Elements of inputs that the oracle looks at for one shape, about: float64 on them takes a fraction of a second."""
LEAST_BLOCKS = 3
MOST_SUSPECTS = 32
THREADS = 8


@dataclass(frozen=True, slots=True)
class RowsChecked:
    """Faults of the chosen rows, block by block, and the errors of a ``CaseResult``."""

    worst_ratio: float | None
    error: float | None
    honest_error: float | None
    library_error: float | None
    faults: tuple[tuple[Outcome, Reason], ...]
    rows: int
    bound: Bound | None = None


def row_dim(spec: OperatorSpec) -> str | None:
    """The dimension whose indices are independent problems, ``None`` where the arguments are not laid out by one."""
    name = spec.outputs[0].dims[0]
    if any(argument.dims[0] != name for argument in spec.outputs):
        return None
    return None if any(name in argument.dims[1:] for argument in spec.arguments) else name


def inner_dim(spec: OperatorSpec) -> str | None:
    """The dimension within a row whose indices are independent problems too: the declared ``groups``, or the second
    axis of all outputs, not their last, of an operator that is elementwise along it; ``None`` elsewhere."""
    if spec.groups is not None:
        return spec.groups
    if not spec.elementwise_local or row_dim(spec) is None or any(len(argument.dims) < 3 for argument in spec.outputs):
        return None
    name = spec.outputs[0].dims[1]
    held = all(argument.dims[1] == name for argument in spec.outputs)
    return name if held and all(argument.dims.count(name) <= 1 for argument in spec.arguments) else None


def inner_axes(spec: OperatorSpec, dims: Dims) -> dict[str, int]:
    """The inner dimension with 1, and what is a multiple of it with how many times; empty where there is none."""
    name = inner_dim(spec)
    if name is None:
        return {}
    multiples = {dim: dims[dim] // dims[name] for dim, span in spec.domain.items() if span.times == name}
    return {name: 1} | multiples


def shown_block(spec: OperatorSpec, dims: Dims, block: range | None) -> range | None:
    """A block of the inner dimension as indices of the outputs' second axis."""
    if block is None:
        return None
    times = inner_axes(spec, dims)[spec.outputs[0].dims[1]]
    return range(block.start * times, block.stop * times)


def row_elements(spec: OperatorSpec, dims: Dims, dim: str) -> int:
    """Elements of inputs and outputs that belong to one row."""
    return sum(math.prod(dims[name] for name in argument.dims[1:])
               for argument in spec.arguments if argument.dims[0] == dim)


def choose_rows(rows: int, per_row: int, draw: torch.Generator) -> torch.Tensor:
    """Sorted row numbers: first block, last block, random ones within the budget; all rows where few exist."""
    wanted = max(LEAST_BLOCKS, BUDGET // max(1, per_row))
    block = min(BLOCK, max(1, wanted // LEAST_BLOCKS))
    if rows <= wanted or rows <= LEAST_BLOCKS * block:
        return torch.arange(rows)
    starts = torch.randint(0, rows - block + 1, (max(1, wanted // block - 2),), generator=draw)
    firsts = torch.cat([torch.tensor([0, rows - block]), starts])
    return torch.unique((firsts[:, None] + torch.arange(block)[None, :]).flatten())


def suspects(collected: Collected) -> torch.Tensor:
    """Rows that hold poison, NaN or infinity in some output: what decides about them is the oracle."""
    found: torch.Tensor | None = None
    for name, values in collected.values.items():
        odd = collected.untouched[name]
        if values.is_floating_point():
            odd = odd | ~torch.isfinite(values)
        rows = odd.flatten(1).any(1) if odd.dim() > 1 else odd
        found = rows if found is None else found | rows
    chosen = torch.nonzero(found).flatten() if found is not None else torch.empty(0, dtype=torch.long)
    return chosen if len(chosen) <= MOST_SUSPECTS else torch.cat([chosen[: MOST_SUSPECTS - 1], chosen[-1:]])


def check_rows(
    spec: OperatorSpec, dims: Dims, inputs: Tensors, attributes: dict[str, float], dtype: str, collected: Collected,
    draw: torch.Generator, stage: Stage, case: str, relative: float | None = None,
) -> RowsChecked:
    """Judge what one call left in ``collected``. Raises ``InvalidReference`` when the reference itself fails."""
    dim = row_dim(spec)
    pieces: list[tuple[torch.Tensor, range | None]]
    if dim is None:
        chosen = torch.arange(next(iter(collected.values.values())).shape[0])
        pieces = [(chosen, None)]
    else:
        each = row_elements(spec, dims, dim)
        odd = suspects(collected)
        chosen = torch.unique(torch.cat([choose_rows(dims[dim], each, draw), odd]))
        inner = inner_dim(spec)
        if inner is not None and each > BUDGET // LEAST_BLOCKS:
            times = inner_axes(spec, dims)[spec.outputs[0].dims[1]]
            pieces = [(torch.tensor([row]), block) for row in chosen.tolist() for block in _blocks(
                dims[inner], each // dims[inner] * len(chosen), collected, row, draw, times)]
        else:
            pieces = [(rows, None) for rows in torch.tensor_split(chosen, min(len(chosen), _threads()))]

    def one(piece: tuple[torch.Tensor, range | None]) -> RowsChecked:
        return _group(spec, dims, dim, *piece, inputs, attributes, dtype, collected, stage, case, relative)

    with ThreadPoolExecutor(_threads()) as pool:
        parts = list(pool.map(one, pieces))
    return RowsChecked(
        worst_ratio=_most([part.worst_ratio for part in parts]), error=_most([part.error for part in parts]),
        honest_error=_most([part.honest_error for part in parts]),
        library_error=_most([part.library_error for part in parts]),
        faults=tuple(fault for part in parts for fault in part.faults), rows=len(chosen),
        bound=max(parts, key=_closeness).bound,
    )


def _blocks(count: int, each: int, collected: Collected, row: int, draw: torch.Generator, times: int) -> list[range]:
    """Consecutive indices of one row that are looked at: the first, the last, random and the suspicious ones. The
    outputs have ``times`` indices for each."""
    inside = Collected({name: values[row] for name, values in collected.values.items()},
                       {name: odd[row] for name, odd in collected.untouched.items()})
    chosen = torch.unique(torch.cat([choose_rows(count, each, draw), suspects(inside) // times]))
    return [range(int(chosen[low]), int(chosen[high - 1]) + 1) for low, high in _runs(chosen)]


def cut_along(
    values: torch.Tensor, axes: tuple[str, ...], moved: Mapping[str, int], part: range | None
) -> torch.Tensor:
    """The ``part`` of ``values`` along whichever of its ``axes`` is in ``moved``, as many times as that says; all of it
    where none is."""
    found = next((axis for axis in axes if axis in moved), None)
    if part is None or found is None:
        return values
    times = moved[found]
    return values.narrow(axes.index(found), part.start * times, len(part) * times)


def cut_dims(dims: Dims, moved: Mapping[str, int], part: range | None) -> dict[str, int]:
    """``dims`` of that part."""
    return dict(dims) if part is None else {**dims, **{dim: len(part) * times for dim, times in moved.items()}}


def _group(
    spec: OperatorSpec, dims: Dims, dim: str | None, rows: torch.Tensor, block: range | None, inputs: Tensors,
    attributes: dict[str, float], dtype: str, collected: Collected, stage: Stage, case: str, relative: float | None,
) -> RowsChecked:
    moved, shown = inner_axes(spec, dims), shown_block(spec, dims, block)
    cut = cut_dims(dims, moved, block) | ({dim: len(rows)} if dim is not None else {})
    within = {a.name: cut_along(inputs[a.name], a.dims, moved, block) for a in spec.inputs}
    mine = {a.name: within[a.name].index_select(0, rows) if a.dims[0] == dim else within[a.name] for a in spec.inputs}
    answers = expect(spec, cut, mine, attributes, dtype, relative)
    lengths = lengths_of(spec, mine)
    faults, compared = [], []
    for argument in spec.outputs:
        got, untouched = (cut_along(held[argument.name], argument.dims, moved, block).index_select(0, rows)
                          for held in (collected.values, collected.untouched))
        answer = answers[argument.name]
        for low, high in _runs(rows):
            part = answer.rows(low, high)
            result = compare(argument.name, argument.dims, got[low:high], untouched[low:high], part,
                             _cut_lengths(lengths, argument.dims[0], low, high))
            compared.append(_placed(result, int(rows[low]), shown))
            if result.finding is not None:
                first, last = int(rows[low]), int(rows[high - 1])
                faults.append(_fault(result.finding, first, last, shown, argument.dims, stage, case))
    honest = [answer.honest_error for answer in answers.values()]
    worst = max(compared, key=_closeness)
    return RowsChecked(worst.worst_ratio, _most([result.error for result in compared]), _most(honest),
                       library_errors(spec, mine, attributes, answers), tuple(faults), len(rows), worst.bound)


def _placed(result: Compared, first: int, block: range | None) -> Compared:
    """``result`` of a block that starts at row ``first``, its bound's index counted in the whole output."""
    if result.bound is None:
        return result
    return replace(result, bound=replace(result.bound, index=whole_index(result.bound.index, first, block)))


def whole_index(index: tuple[int, ...], first: int, block: range | None) -> tuple[int, ...]:
    """An index within rows from ``first`` on, and within ``block`` along the inner dimension, in the whole output."""
    head, *rest = index
    if block is not None:
        rest[0] += block.start
    return (head + first, *rest)


def _cut_lengths(lengths: Lengths | None, axis: str, low: int, high: int) -> Lengths | None:
    if lengths is None or lengths.axis != axis:
        return lengths
    return replace(lengths, values=lengths.values[low:high])


def _closeness(result: Compared | RowsChecked) -> float:
    return -1.0 if result.worst_ratio is None else result.worst_ratio


def _fault(
    found: Finding, first: int, last: int, block: range | None, axes: tuple[str, ...], stage: Stage, case: str
) -> tuple[Outcome, Reason]:
    where = f"{axes[0]} {first} to {last}" if last > first else f"{axes[0]} {first}"
    if block is not None:
        where += f" and {axes[1]} {block.start} to {block.stop - 1}"
    index = whole_index(found.index, first, block)
    text = f"Case '{case}', judged at {where} (numbers below count from the first of them): {found.text}"
    return found.outcome, Reason(found.code, stage, text, case=case, index=index, got=found.got,
                                 expected=found.expected, bound=found.bound)


def _runs(rows: torch.Tensor) -> list[tuple[int, int]]:
    """Consecutive stretches of sorted row numbers, as positions in ``rows``."""
    breaks = (torch.nonzero(rows[1:] - rows[:-1] != 1).flatten() + 1).tolist()
    return list(pairwise([0, *breaks, len(rows)]))


def _most(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _threads() -> int:
    return max(1, min(THREADS, len(os.sched_getaffinity(0))))

