"""The operators this installation knows, loaded on first use. Data only: no torch, no numpy."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from harness.domain.errors import UsageError
from harness.operators.base import OperatorSpec
from harness.operators.completeness import IncompleteOperator, missing_parts

NAMES = (
    "rms_norm", "softmax", "decode_attention", "add_rms_norm", "layer_norm", "swiglu",
    "rope", "cross_entropy", "matmul_bias_gelu", "topk",
)
"""Shipped operators, in the order in which pages list them."""


def get(name: str) -> OperatorSpec:
    """The operator called ``name``.

    Raises ``UsageError`` naming the known operators, ``IncompleteOperator`` when its declaration has gaps.
    """
    if name not in NAMES:
        raise UsageError(
            f"There is no operator {name!r}. Known operators are {', '.join(NAMES)}.", code="operator_unknown"
        )
    return _load(name)


def all_operators() -> tuple[OperatorSpec, ...]:
    """Every shipped operator in listing order."""
    return tuple(_load(name) for name in NAMES)


def register(spec: OperatorSpec) -> OperatorSpec:
    """Accept ``spec`` when nothing is missing from it, and return it.

    Raises ``IncompleteOperator`` whose ``missing`` lists every gap.
    """
    gaps = missing_parts(spec)
    if gaps:
        raise IncompleteOperator(spec.name, gaps)
    return spec


@cache
def _load(name: str) -> OperatorSpec:
    return register(import_module(f"harness.operators.{name}.spec").SPEC)
