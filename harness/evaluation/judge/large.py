"""Inputs of measured shapes, made in parallel: a generator is serial, and a gigabyte of it takes seconds.

Their cost is memory more than arithmetic: on fresh pages a gigabyte costs a second of the kernel's time. So what is
lent is written once, straight into its memory files, and read from there by the judge as well, and threads of all
shapes together are as many as there are cores, each with parts of its own in flight.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import torch

from harness.evaluation.buffers import InputFile, dtype_of
from harness.evaluation.judge.inputs import make_inputs
from harness.evaluation.judge.rows import row_dim, row_elements
from harness.operators.base import Argument, Dims, OperatorSpec
from harness.operators.implementation import Tensors

CHUNK = 1 << 23
"""Elements of arguments that one thread makes at a time."""
LEAST_ROWS = 2
THREADS = 8
_turns = threading.BoundedSemaphore(max(1, len(os.sched_getaffinity(0))))
"""Parts being made at a time by the whole process; each takes a few hundred megabytes while it is made."""


def make_large_inputs(
    spec: OperatorSpec, dims: Dims, regimes: tuple[str, ...], attributes: Mapping[str, float], dtype: str, seed: int,
    *labels: object,
) -> Tensors:
    """As ``make_inputs``, with rows made in parts whose number depends on the sizes alone.

    The regimes are mixed within a part and go on from part to part as if rows took turns; arguments without rows come
    from the first part. Equal ``seed`` and ``labels`` give equal contents on every machine.
    """
    if len(_starts(spec, dims)) == 1:
        return make_inputs(spec, dims, regimes, attributes, dtype, seed, *labels)
    whole = {a.name: torch.empty(_shape(a, dims), dtype=dtype_of(a.dtype or dtype)) for a in spec.inputs}

    def put(name: str, values: torch.Tensor, first: int) -> None:
        whole[name].view(-1)[first : first + values.numel()] = values.flatten()

    _make(spec, dims, regimes, attributes, dtype, seed, labels, put)
    return whole


def write_large_inputs(
    spec: OperatorSpec, dims: Dims, regimes: tuple[str, ...], attributes: Mapping[str, float], dtype: str, seed: int,
    *labels: object,
) -> dict[str, InputFile]:
    """The contents of ``make_large_inputs`` in memory files that are still to be sealed."""
    files: dict[str, InputFile] = {}
    try:
        for argument in spec.inputs:
            files[argument.name] = InputFile(argument.name, _shape(argument, dims), dtype_of(argument.dtype or dtype))
        _make(spec, dims, regimes, attributes, dtype, seed, labels,
              lambda name, values, first: files[name].write(values, first))
    except BaseException:
        for file in files.values():
            file.close()
        raise
    return files


def _shape(argument: Argument, dims: Dims) -> tuple[int, ...]:
    return tuple(dims[name] for name in argument.dims)


def _starts(spec: OperatorSpec, dims: Dims) -> list[int]:
    """The first row of every part."""
    dim = row_dim(spec)
    if dim is None:
        return [0]
    return list(range(0, dims[dim], max(LEAST_ROWS, CHUNK // max(1, row_elements(spec, dims, dim)))))


def _make(
    spec: OperatorSpec, dims: Dims, regimes: tuple[str, ...], attributes: Mapping[str, float], dtype: str, seed: int,
    labels: tuple[object, ...], put: Callable[[str, torch.Tensor, int], None],
) -> None:
    """Make the parts and ``put`` each array of them at the flat element of the whole that it begins at."""
    dim, starts = row_dim(spec), _starts(spec, dims)

    def fill(number: int) -> None:
        with _turns:
            first = starts[number]
            if dim is None or len(starts) == 1:
                made = make_inputs(spec, dims, regimes, attributes, dtype, seed, *labels)
            else:
                turn, count = first % len(regimes), min(starts[1], dims[dim] - first)
                made = make_inputs(spec, {**dims, dim: count}, regimes[turn:] + regimes[:turn], attributes, dtype, seed,
                                   *labels, "part", number)
            for argument in spec.inputs:
                values = made.pop(argument.name)
                if argument.dims[0] == dim:
                    put(argument.name, values, first * (values.numel() // max(1, values.shape[0])))
                elif number == 0:
                    put(argument.name, values, 0)

    with ThreadPoolExecutor(max(1, min(THREADS, len(starts), len(os.sched_getaffinity(0))))) as pool:
        list(pool.map(fill, range(len(starts))))
