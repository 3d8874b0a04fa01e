"""Exact problems and metamorphic relations of the product with bias and GELU."""

from __future__ import annotations

import torch

from harness.operators.base import Dims
from harness.operators.exact import EXACT, odd_integers
from harness.operators.implementation import Attributes, ExactProbe, Relation, Tensors
from harness.operators.values import normal, signs

PROBE_ROWS, PROBE_COLUMNS = 24, 96
"""Enough sums for some to lie within 2^-18 of a rounding tie of bfloat16, where so small an error shows."""
LINEAR = 64.0
"""From here on GELU leaves its argument alone: exp of minus twice the tanh's argument is below 1e-30."""


def relations(inputs: Tensors, attributes: Attributes, generator: torch.Generator) -> list[Relation]:
    """Powers of two move between a and b without changing a bit; rows, columns and terms may be permuted; a row or a
    column alone gives its part; zero columns of a add nothing, whatever stands in b."""
    a, b, bias = inputs["a"], inputs["b"], inputs["bias"]
    same = dict(attributes)
    m, k, n = a.shape[0], a.shape[1], b.shape[1]
    rows, terms, columns = (torch.randperm(size, generator=generator) for size in (m, k, n))
    row, column = int(torch.randint(m, (), generator=generator)), int(torch.randint(n, (), generator=generator))
    more = int(torch.randint(1, 5, (), generator=generator))
    padding = (normal((more, n), generator) * 100).to(b.dtype)
    return [
        Relation("a times 2 with half of b changes nothing", {**inputs, "a": a * 2, "b": b / 2}, same,
                 lambda outputs: outputs, exact=a.dtype is not torch.float16),
        Relation("rows of a permuted", {**inputs, "a": a[rows]}, same,
                 lambda outputs: {"out": outputs["out"][rows]}, exact=False),
        Relation("columns of b and bias permuted", {**inputs, "b": b[:, columns].contiguous(), "bias": bias[columns]},
                 same, lambda outputs: {"out": outputs["out"][:, columns]}, exact=False),
        Relation("terms of the sums permuted", {**inputs, "a": a[:, terms].contiguous(), "b": b[terms]}, same,
                 lambda outputs: outputs, exact=False),
        Relation(f"row {row} alone gives its row", {**inputs, "a": a[row : row + 1]}, same,
                 lambda outputs: {"out": outputs["out"][row : row + 1]}, exact=False),
        Relation(f"column {column} alone gives its column",
                 {**inputs, "b": b[:, column : column + 1].contiguous(), "bias": bias[column : column + 1].clone()},
                 same, lambda outputs: {"out": outputs["out"][:, column : column + 1]}, exact=False),
        Relation(f"{more} columns of zeros in a add nothing",
                 {**inputs, "a": torch.cat([a, torch.zeros(m, more, dtype=a.dtype)], 1), "b": torch.cat([b, padding])},
                 same, lambda outputs: outputs, exact=False),
    ]


def exact_probes(dims: Dims, dtype: torch.dtype, generator: torch.Generator) -> list[ExactProbe]:
    """Integers whose sums are exact and so large that GELU changes nothing: the answer is the sum, rounded once.

    One of the operands has the full width of the dtype, so that whatever narrows it (TF32, a bfloat16 copy) is seen;
    sums exceed what a half-precision accumulator holds. One probe per operand, and one whose terms nearly cancel.
    """
    k = min(dims["k"], 512)
    made = [_wide(k, dtype, generator, "a"), _wide(k, dtype, generator, "b"), _cancelling(k, dtype, generator)]
    return [probe for probe in made if probe is not None]


def _wide(k: int, dtype: torch.dtype, generator: torch.Generator, wide: str) -> ExactProbe | None:
    """Products are positive, because a term's sign is in both of its factors."""
    shapes = {"a": (PROBE_ROWS, k), "b": (k, PROBE_COLUMNS)}
    bits = {name: None if name == wide else 2 for name in shapes}
    made = {name: odd_integers(shape, dtype, generator, bits[name]) for name, shape in shapes.items()}
    sign = signs((k,), generator).double()
    a, b = made["a"] * sign, made["b"] * sign[:, None]
    return _probe(f"integers, {wide} of full width", a, b, odd_integers((PROBE_COLUMNS,), dtype, generator), dtype)


def _cancelling(k: int, dtype: torch.dtype, generator: torch.Generator) -> ExactProbe | None:
    """Terms of both signs and a bias above all of them: partial sums go up and down, the result is exact."""
    a = odd_integers((PROBE_ROWS, k), dtype, generator, 5) * signs((PROBE_ROWS, k), generator).double()
    b = odd_integers((k, PROBE_COLUMNS), dtype, generator, 3) * signs((k, PROBE_COLUMNS), generator).double()
    least = -float((a @ b).min())
    power = 1 << max(7, int(least + LINEAR).bit_length())
    bias = torch.full((PROBE_COLUMNS,), float(power), dtype=torch.float64)
    return _probe("integers that nearly cancel", a, b, bias, dtype)


def _probe(name: str, a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor, dtype: torch.dtype) -> ExactProbe | None:
    """``None`` where a sum is too small for GELU to leave it alone."""
    sums = a @ b + bias
    largest = float((a.abs() @ b.abs() + bias.abs()).max())
    assert largest < EXACT
    if dtype is torch.float16:  # sums of integers would leave its range
        part = 2.0 ** -max(0, int(largest).bit_length() - 15)
        a, sums, bias = a * part, sums * part, bias * part
    if float(sums.min()) < LINEAR:
        return None
    inputs = {"a": a.to(dtype), "b": b.to(dtype), "bias": bias.to(dtype)}
    return ExactProbe(name, inputs, {}, {"out": sums.to(dtype)})
