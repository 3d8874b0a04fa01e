"""Special values where they are rarely tried: in long rows, in many rows, in every dtype.

The listed cases hold NaN, ties, zeros of both signs, rows of -inf, huge values or ignored targets in about a thousand
columns of one dtype. A kernel with another way for long rows, or for half precision, meets them here. A kind is a
regime of these cases, and ``ENDS`` beside them: equal spikes at both ends of every row and around multiples of blocks,
so that any end that is left out shows.

Sizes are drawn as in ``sizes``, but from the highest third (``TOP``) of the logarithmic range of the dimension that
leads: n of the first dimension lie in n equal parts of that third, other dimensions lead once each where the place has
calls for it. Rows of one call are shared out among all kinds; where a call may not hold that many, as many as fit,
and the others come first next time. Every other call is as small otherwise as it may be. Kinds that are about an
argument which all rows share (``shared_regimes``) have calls of their own. Half precision comes first, every dtype of
the operator once at least; attributes take turns, too.

Measured sizes have calls of their own, with as few rows as the kinds need: code for one shape of a board meets every
kind there. Other sizes meet kinds in ``drawn_sizes`` (``special_rows``).

For n = 6 (Numba) what is wrong from 32,768 of 131,072 columns on is met by every kind at least once, what is wrong from
4,096 on at least four times; for n = 5 (a device) the same at least once and three times, whatever the dtype.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from harness.domain.vocabulary import Backend
from harness.evaluation.judge.amounts import Amounts, amounts_of
from harness.evaluation.judge.inputs import make_inputs
from harness.evaluation.judge.rows import row_dim
from harness.evaluation.judge.session import Problem, Session
from harness.evaluation.judge.sizes import allowed, largest_within, log_size, sizes_in_words, sizes_of, strata
from harness.evaluation.judge.special_rows import WIDE, kinds_of
from harness.evaluation.judge.trials import Trial, draw_for, dtypes_of, usual_dtype
from harness.evaluation.run import Run
from harness.operators.base import Dims, OperatorSpec
from harness.operators.implementation import Tensors

PLAIN = "normal"
TOP = 3
"""Leading sizes lie in the highest of so many equal parts of the logarithmic range."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call before its contents are made: sizes, kinds in the order of their rows, dtype and attributes."""

    dims: dict[str, int]
    kinds: tuple[str, ...]
    dtype: str
    attributes: Mapping[str, float]


def special_values(run: Run, session: Session) -> Iterator[Trial]:
    """Every kind at large sizes and in every dtype."""
    if run.seed is None:
        raise RuntimeError("probes need the seed that smoke draws")
    measured = [point.dims for point in run.workload.shapes[run.request.backend]]
    calls = special_calls(run.spec, amounts_of(run), _dtypes(run), draw_for(run, "specials"), measured)
    for turn, call in enumerate(calls):
        name = f"probe: special values {turn + 1} ({sizes_in_words(call.dims)}, {call.dtype})"
        inputs = shared_out(run.spec, call, run.seed, name)
        attributes = run.spec.attributes_for(call.dims, call.attributes)
        yield Trial(Problem(name, call.dims, inputs, attributes, call.dtype))


def special_calls(spec: OperatorSpec, amounts: Amounts, dtypes: Sequence[str], draw: torch.Generator,
                  measured: Sequence[Dims] = ()) -> list[Call]:
    """The calls of one round; the last of ``dtypes`` is that of a single one where there are several. ``measured``:
    sizes of the shapes that are timed."""
    first, *others = (dim for dim, span in spec.domain.items() if span.low < span.high)
    leads = [first] * amounts.specials
    start = int(torch.randint(max(1, len(others)), (), generator=draw))
    leads += [others[(start + turn) % len(others)] for turn in range(min(len(others), amounts.special_others))]
    depths = {dim: strata(leads.count(dim), draw) for dim in dict.fromkeys(leads)}
    attributes = _attributes(spec, draw)
    waiting: dict[str, list[str]] = {}
    calls = []
    for turn, lead in enumerate(leads):
        dtype = _dtype(dtypes, turn, amounts.specials)
        kinds = kinds_of(spec, dtype)
        queue = waiting.setdefault(dtype, [])
        if not queue:
            queue += [kinds[index] for index in torch.randperm(len(kinds), generator=draw).tolist()]
        dims = _dims(spec, amounts, lead, 1 - depths[lead].pop() / TOP, len(kinds), draw,
                     thin=lead == first and turn % 2 == 1)
        count = min(len(kinds), dims[row_dim(spec) or lead])
        rest = [kind for kind in kinds if kind not in queue]
        chosen = (queue + [rest[index] for index in torch.randperm(len(rest), generator=draw).tolist()])[:count]
        waiting[dtype] = [kind for kind in queue if kind not in chosen]
        calls.append(Call(dims, tuple(chosen), dtype, attributes[turn % len(attributes)]))
    return calls + _alone(spec, amounts, dtypes, attributes, draw) + _measured(
        spec, amounts, dtypes, attributes, measured, draw)


def _measured(spec: OperatorSpec, amounts: Amounts, dtypes: Sequence[str], attributes: Sequence[Mapping[str, float]],
              measured: Sequence[Dims], draw: torch.Generator) -> list[Call]:
    """Calls at ``measured`` sizes, drawn among those that stay within the amounts, in the usual dtype; rows are as many
    as there are kinds, or as few of them as the amounts allow. Kinds about shared arguments have one row each,
    at as many of these sizes as other dimensions have calls."""
    row, dtype, room = row_dim(spec), dtypes[0], replace(amounts, elements=amounts.special_elements)
    kinds, found = kinds_of(spec, dtype), {}
    for dims in measured:
        own = {dim: dims[dim] // (dims[span.times] if span.times else 1) for dim, span in spec.domain.items()}
        if row is not None:
            own[row] = 1
            own[row] = largest_within(spec, room, own, row, len(kinds))
        sizes = sizes_of(spec.domain, own)
        if allowed(spec, room, sizes):
            found[tuple(sizes.items())] = sizes
    different, calls = list(found.values()), []
    for turn, index in enumerate(torch.randperm(len(different), generator=draw).tolist()[:amounts.special_measured]):
        chosen = [kinds[place] for place in torch.randperm(len(kinds), generator=draw).tolist()]
        count = different[index][row] if row is not None else 1
        calls.append(Call(different[index], tuple(chosen[:count]), dtype, attributes[turn % len(attributes)]))
        for kind in spec.shared_regimes if turn < amounts.special_others else ():
            few = {**different[index]} if row is None else {**different[index], row: 1}
            calls.append(Call(few, (kind,), dtype, attributes[turn % len(attributes)]))
    return calls


def _alone(spec: OperatorSpec, amounts: Amounts, dtypes: Sequence[str], attributes: Sequence[Mapping[str, float]],
           draw: torch.Generator) -> list[Call]:
    """Calls of the kinds about shared arguments, led by dimensions of these, as many each as other dimensions have, one
    at least."""
    row = row_dim(spec)
    shared = [dim for argument in spec.inputs if row not in argument.dims for dim in argument.dims]
    leads = [dim for dim, span in spec.domain.items() if dim in shared and span.low < span.high]
    count = min(len(leads), max(1, amounts.special_others))
    start = int(torch.randint(max(1, len(leads)), (), generator=draw))
    calls = []
    for turn, (kind, step) in enumerate((kind, step) for kind in spec.shared_regimes for step in range(count)):
        lead = leads[(start + turn) % len(leads)] if count == 1 else leads[step]
        dims = _dims(spec, amounts, lead, 1 - float(torch.rand((), generator=draw)) / TOP, 1, draw)
        calls.append(Call(dims, (kind,), dtypes[turn % len(dtypes)], attributes[turn % len(attributes)]))
    return calls


def shared_out(spec: OperatorSpec, call: Call, seed: int, *labels: object) -> Tensors:
    """Inputs of ``call``: rows in consecutive parts, one for each kind, what all rows share beside normal ones. Equal
    ``seed`` and ``labels`` give equal contents."""
    attributes, dim = spec.attributes_for(call.dims, call.attributes), row_dim(spec)
    if dim is None or len(call.kinds) == 1:
        return make_inputs(spec, call.dims, call.kinds, attributes, call.dtype, seed, *labels)
    ends = [call.dims[dim] * turn // len(call.kinds) for turn in range(len(call.kinds) + 1)]
    parts = [make_inputs(spec, {**call.dims, dim: high - low}, kind, attributes, call.dtype, seed, *labels, kind)
             for kind, low, high in zip(call.kinds, ends, ends[1:], strict=False)]
    plain = make_inputs(spec, {**call.dims, dim: 1}, PLAIN, attributes, call.dtype, seed, *labels)
    return {argument.name: torch.cat([part[argument.name] for part in parts])
            if argument.dims[0] == dim else plain[argument.name] for argument in spec.inputs}


def _dtypes(run: Run) -> list[str]:
    """The dtypes of the candidate's backend, the usual one first and float32 last."""
    if Backend(run.request.backend) is not Backend.TRITON:
        return [usual_dtype(run)]
    usual = run.workload.dtypes[Backend.TRITON]
    return sorted(dtypes_of(run), key=lambda dtype: (dtype == WIDE, dtype != usual))


def _dtype(dtypes: Sequence[str], turn: int, count: int) -> str:
    """The dtype of a turn: the last one in the last of ``count``, the others by turns elsewhere."""
    if len(dtypes) == 1 or turn == count - 1:
        return dtypes[-1]
    return dtypes[turn % (len(dtypes) - 1)]


def _attributes(spec: OperatorSpec, draw: torch.Generator) -> list[Mapping[str, float]]:
    """The different attributes of the cases, in random order."""
    known: list[Mapping[str, float]] = []
    for case in spec.cases:
        given = {one.name: case.attributes[one.name] for one in spec.attributes
                 if one.dim is None and one.name in case.attributes}
        if given not in known:
            known.append(given)
    return [known[index] for index in torch.randperm(len(known), generator=draw).tolist()]


def _dims(
    spec: OperatorSpec, amounts: Amounts, lead: str, depth: float, rows: int, draw: torch.Generator, *,
    thin: bool = False,
) -> dict[str, int]:
    """Sizes with ``lead`` at ``depth`` of its range and, as far as the amounts allow, ``rows`` rows; others and
    more rows from what is left then, or the least of each where ``thin``."""
    room = replace(amounts, elements=amounts.special_elements)
    span, row, first = spec.domain[lead], row_dim(spec), next(iter(spec.domain))
    own = {dim: one.low for dim, one in spec.domain.items()} | {lead: log_size(span.low, span.high, depth)}
    if span.within is not None:
        own[span.within] = max(own[span.within], own[lead])
    if amounts.programs:  # rather all kinds than the longest rows
        own[lead] = max(log_size(span.low, span.high, 1 - 1 / TOP), min(
            own[lead], largest_within(spec, room, own | ({} if row in (None, lead) else {row: rows}), lead, own[lead])))
        own[lead] = min(own[lead], largest_within(spec, room, own, lead, own[lead]))
    if row is not None and row != lead:
        own[row] = largest_within(spec, room, own, row, rows)
    others = [dim for dim in own if dim not in (lead, span.within) and not (thin and spec.domain[dim].within is None)]
    for dim in [others[index] for index in torch.randperm(len(others), generator=draw).tolist()]:
        within = spec.domain[dim].within
        high = spec.domain[dim].high if within is None else min(spec.domain[dim].high, own[within])
        depth = float(torch.rand((), generator=draw))
        if dim == first:  # special values say little in rows of two or three
            depth = (1 + depth) / 2
        own[dim] = log_size(own[dim], max(own[dim], largest_within(spec, room, own, dim, high)), depth)
    return sizes_of(spec.domain, own)
