"""Inputs of a problem from a secret seed."""

from __future__ import annotations

import os
from collections.abc import Mapping

import torch

from harness.domain.vocabulary import Backend
from harness.evaluation.buffers import dtype_of
from harness.evaluation.judge.seeds import generator
from harness.evaluation.run import Place
from harness.operators.base import Case, Dims, OperatorSpec, Workload
from harness.operators.implementation import Tensors, load_implementation

HUGE_PAGES = "THP_MEM_ALLOC_ENABLE"
"""What torch is told to ask for large pages with."""

# Problems are small, and idle threads of a pool would spin on the cores that candidates compile and are timed on.
torch.set_num_threads(1)


def _ask_for_large_pages() -> None:
    """Arrays of two megabytes and more come and go by the gigabyte, and small pages cost the kernel more time than the
    judge's arithmetic takes. Torch looks once, when it first allocates; processes started later are told nothing."""
    given = os.environ.get(HUGE_PAGES)
    os.environ.setdefault(HUGE_PAGES, "1")
    torch.empty(1)
    if given is None:
        del os.environ[HUGE_PAGES]


_ask_for_large_pages()


def make_inputs(
    spec: OperatorSpec,
    dims: Dims,
    regimes: str | tuple[str, ...],
    attributes: Mapping[str, float],
    dtype: str,
    seed: int,
    *labels: object,
) -> Tensors:
    """Dense CPU tensors by argument name, quantised to ``dtype``; several regimes are mixed within one tensor.

    Equal ``seed`` and ``labels`` give equal contents.
    """
    names = (regimes,) if isinstance(regimes, str) else tuple(regimes)
    return load_implementation(spec).make_inputs(dims, names, dtype_of(dtype), generator(seed, *labels), attributes)


def all_attributes(spec: OperatorSpec, given: Mapping[str, float]) -> dict[str, float]:
    """``given`` completed by the declared defaults."""
    return {attribute.name: attribute.default for attribute in spec.attributes} | dict(given)


def cases_for(spec: OperatorSpec, place: Place) -> tuple[Case, ...]:
    """The cases that run there: interpreted ones have reduced shapes."""
    return spec.interpret_cases if place is Place.INTERPRETER else spec.cases


def dtype_for(case: Case, workload: Workload, backend: Backend) -> str:
    """The dtype of one case."""
    return case.dtype or workload.dtypes[backend]
