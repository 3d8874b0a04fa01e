"""Spikes: every input must matter everywhere, and only where it should.

Positions come from the secret seed and cover rows from end to end. A cache of answers, a sampled reduction, a truncated
one, an argument that is not read: each leaves a spike unanswered. Rows of these operators do not depend on each other,
so a row without a spike must keep its bits while its neighbours change.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch

from harness.domain.verdict import Reason
from harness.domain.vocabulary import Outcome
from harness.evaluation.judge.amounts import amounts_of
from harness.evaluation.judge.checking import lengths_of
from harness.evaluation.judge.lending import Collected
from harness.evaluation.judge.rows import row_dim
from harness.evaluation.judge.session import Problem, Session
from harness.evaluation.judge.trials import Kept, Trial, draw_for, usual_attributes, usual_dims, usual_dtype
from harness.evaluation.judge.words import Lengths
from harness.evaluation.run import Refused, Run
from harness.operators.base import Argument, OperatorSpec
from harness.operators.implementation import Tensors

SHARED_SPIKES = 8
"""Spikes at a time in an argument that all rows share (a weight)."""


def sensitivity(run: Run, session: Session) -> Iterator[Trial]:
    """One problem with a spike per row, then spikes in one argument after the other beside an unchanged problem."""
    amounts = amounts_of(run)
    dims = {**usual_dims(run), run.spec.outputs[0].dims[0]: amounts.spiked_rows}
    attributes, dtype = usual_attributes(run), usual_dtype(run)
    yield Trial(session.problem("probe: spikes", dims, "stratified_spikes", attributes, dtype))
    base = session.problem("probe: no spikes", dims, "normal", attributes, dtype)
    kept = Kept()
    yield Trial(base, kept)
    for argument in run.spec.inputs:
        for turn in range(amounts.spikes):
            draw = draw_for(run, "spikes", argument.name, turn)
            inputs, still = spiked(run.spec, argument, base.inputs, draw)
            name = f"probe: spikes in {argument.name} {turn + 1}"
            problem = Problem(name, dims, inputs, base.attributes, dtype)
            yield Trial(problem, partial(_unmoved, run, name, still, kept))


def spiked(
    spec: OperatorSpec, argument: Argument, inputs: Tensors, draw: torch.Generator
) -> tuple[Tensors, torch.Tensor]:
    """``inputs`` with spikes in ``argument``, and the rows of the outputs that must keep their bits (indices).

    An argument with rows is changed in about half of them, once each; one that all rows share in ``SHARED_SPIKES``
    places, ends included. Counts only shrink, so that no position comes into use that nobody filled; as they may steer
    how work is split, no row has to keep its bits then.
    """
    values = inputs[argument.name].clone()
    nobody = torch.empty(0, dtype=torch.long)
    rows_dim = row_dim(spec)
    if rows_dim is None or argument.dims[0] != rows_dim:
        flat = values.view(-1)
        chosen = torch.randint(flat.numel(), (SHARED_SPIKES,), generator=draw)
        chosen[0], chosen[-1] = 0, flat.numel() - 1
        flat[chosen] = _sizes(len(chosen), values.dtype, draw)
        return {**inputs, argument.name: values}, nobody
    order = torch.randperm(values.shape[0], generator=draw)
    moved, still = order[: max(1, len(order) // 2)], order[max(1, len(order) // 2) :]
    if not values.is_floating_point():
        for row in moved.tolist():
            values[row] = (_other_count(int(values[row]), draw) if argument.counts
                           else _another(inputs[argument.name].roll(-row, 0)))
        return {**inputs, argument.name: values}, nobody
    places = _places(argument, values, moved, lengths_of(spec, inputs), draw)
    values[tuple(places)] = _sizes(places.shape[1], values.dtype, draw)
    return {**inputs, argument.name: values}, still


def _places(
    argument: Argument, values: torch.Tensor, rows: torch.Tensor, lengths: Lengths | None, draw: torch.Generator
) -> torch.Tensor:
    """One position per row [axes, rows]. Along every axis they cover it from end to end; positions out of use do not
    count, and rows with none in use are left out."""
    count = len(rows)
    chosen = [rows]
    used = torch.ones(count, dtype=torch.bool)
    for axis, dim in enumerate(argument.dims[1:], start=1):
        share = (torch.randperm(count, generator=draw) + torch.rand(count, generator=draw)) / count
        size = torch.full((count,), values.shape[axis])
        if lengths is not None and dim == lengths.counted:
            size = lengths.values[rows].long()
            used = size > 0
        chosen.append((share * size).long().minimum(size - 1))
    return torch.stack(chosen)[:, used]


def _sizes(count: int, dtype: torch.dtype, draw: torch.Generator) -> torch.Tensor:
    """Values from 100 to 1000 of either sign."""
    exponent = 2 + torch.rand(count, generator=draw)
    sign = torch.randint(0, 2, (count,), generator=draw) * 2 - 1
    return (sign * 10**exponent).to(dtype)


def _another(values: torch.Tensor) -> torch.Tensor:
    """The first of ``values`` that differs from the one in front: in range, whatever that is. That one itself where all
    are alike."""
    return values[int((values != values[0]).view(len(values), -1).any(1).int().argmax())]


def _other_count(count: int, draw: torch.Generator) -> int:
    return int(torch.randint(count, (), generator=draw)) if count > 0 else 0


def _unmoved(run: Run, case: str, rows: torch.Tensor, kept: Kept, collected: Collected) -> None:
    """Refuse where a row without a spike changed its bits."""
    for argument in run.spec.outputs if len(rows) else ():
        now, before = (values[argument.name][rows] for values in (collected.values, kept.values))
        different = _bits(now) != _bits(before)
        if not bool(different.any()):
            continue
        row = int(rows[int(different.flatten(1).any(1).nonzero()[0, 0])])
        text = (
            f"Row {row} of output '{argument.name}' changed its bits although only other rows of the inputs changed. "
            f"Every row must depend on its own inputs alone; look for indices that reach into a neighbour. Case "
            f"'{case}'."
        )
        raise Refused(Outcome.INCORRECT_NUMERIC, Reason("row_leak", run.stage, text, case=case, index=(row,)))


def _bits(values: torch.Tensor) -> torch.Tensor:
    return values.contiguous().view(values.shape[0], -1).view(torch.uint8)
