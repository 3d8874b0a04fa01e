"""Rows of special values among ordinary ones, at any size.

``specials`` brings every kind to the largest sizes. A kernel with other code for whole blocks, for rows of one
template's length or for a measured shape meets special values here: some rows of a problem that was made anyway are
replaced by rows of kinds, each kind one row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from harness.evaluation.judge.inputs import make_inputs
from harness.evaluation.judge.rows import row_dim
from harness.evaluation.judge.seeds import generator
from harness.operators.base import Dims, OperatorSpec
from harness.operators.implementation import Tensors

ENDS = "ends"
"""The regime of equal spikes at both ends of a row and around multiples of blocks: whatever is left out shows."""
WIDE = "float32"
MOST_SHARE = 2
"""At most one row in so many is replaced, what is ordinary stays in every problem of several rows; a single one may
be."""


def kinds_of(spec: OperatorSpec, dtype: str) -> list[str]:
    """The kinds that rows may be of in ``dtype``: those of cases without a dtype of their own, and of cases of this
    one; not those that only short rows may be of in float32, nor those about what rows share."""
    named = [case.regime for case in spec.cases if case.dtype in (None, dtype)]
    left_out = {*spec.shared_regimes, *(spec.short_regimes if dtype == WIDE else ())}
    return [kind for kind in dict.fromkeys([*named, ENDS]) if kind not in left_out]


def room_for(spec: OperatorSpec, dims: Dims) -> int:
    """How many rows of these sizes may be replaced."""
    dim = row_dim(spec)
    return 0 if dim is None else max(1, dims[dim] // MOST_SHARE)


def with_special_rows(
    spec: OperatorSpec, dims: Dims, inputs: Tensors, kinds: Sequence[str], attributes: Mapping[str, float], dtype: str,
    seed: int, *labels: object,
) -> Tensors:
    """``inputs`` with one row each of ``kinds``, as many of them as there is room for, at drawn places. What all rows
    share stays. The tensors given are not changed; equal ``seed`` and ``labels`` give equal contents."""
    dim, chosen = row_dim(spec), list(kinds)[: room_for(spec, dims)]
    if dim is None or not chosen:
        return inputs
    rows = torch.randperm(dims[dim], generator=generator(seed, *labels, "special rows"))[: len(chosen)].tolist()
    mixed = {argument.name: inputs[argument.name].clone() if argument.dims[0] == dim else inputs[argument.name]
             for argument in spec.inputs}
    for kind, row in zip(chosen, rows, strict=True):
        own = make_inputs(spec, {**dims, dim: 1}, kind, attributes, dtype, seed, *labels, kind)
        for argument in spec.inputs:
            if argument.dims[0] == dim:
                mixed[argument.name][row] = own[argument.name][0]
    return mixed
