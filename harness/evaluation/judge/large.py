"""Inputs of measured shapes, made in parallel: a generator is serial, and a gigabyte of it takes seconds."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import torch

from harness.evaluation.buffers import dtype_of
from harness.evaluation.judge.inputs import make_inputs
from harness.evaluation.judge.rows import row_dim, row_elements
from harness.operators.base import Dims, OperatorSpec
from harness.operators.implementation import Tensors

CHUNK = 1 << 23
"""Elements of arguments that one thread makes at a time."""
LEAST_ROWS = 2
THREADS = 8


def make_large_inputs(
    spec: OperatorSpec, dims: Dims, regimes: tuple[str, ...], attributes: Mapping[str, float], dtype: str, seed: int,
    *labels: object,
) -> Tensors:
    """As ``make_inputs``, with rows made in parts whose number depends on the sizes alone.

    The regimes are mixed within a part and go on from part to part as if rows took turns; arguments without rows come
    from the first part. Equal ``seed`` and ``labels`` give equal contents on every machine.
    """
    dim = row_dim(spec)
    rows = 0 if dim is None else dims[dim]
    part = 0 if dim is None else max(LEAST_ROWS, CHUNK // max(1, row_elements(spec, dims, dim)))
    if dim is None or rows <= part:
        return make_inputs(spec, dims, regimes, attributes, dtype, seed, *labels)
    starts = list(range(0, rows, part))
    whole: Tensors = {
        a.name: torch.empty([dims[name] for name in a.dims], dtype=dtype_of(a.dtype or dtype))
        for a in spec.inputs if a.dims[0] == dim
    }

    def fill(number: int) -> Tensors:
        first = starts[number]
        count = min(part, rows - first)
        turn = first % len(regimes)
        made = make_inputs(spec, {**dims, dim: count}, regimes[turn:] + regimes[:turn], attributes, dtype, seed,
                           *labels, "part", number)
        for name, values in whole.items():
            values[first : first + count] = made[name]
        return {name: values for name, values in made.items() if name not in whole} if number == 0 else {}

    with ThreadPoolExecutor(max(1, min(THREADS, len(os.sched_getaffinity(0))))) as pool:
        rest, *_ = list(pool.map(fill, range(len(starts))))
    made = whole | rest
    return {argument.name: made[argument.name] for argument in spec.inputs}
