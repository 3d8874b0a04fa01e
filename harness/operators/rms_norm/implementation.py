"""RMSNorm in torch: inputs, float64 reference, honest implementation and relations. Formula: Zhang & Sennrich 2019."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch.nn.functional import rms_norm

from harness.operators.base import Dims
from harness.operators.exact import EXACT, odd_integers, roundings, with_square_sum
from harness.operators.gains import gains, regimes_of_rows
from harness.operators.implementation import Attributes, ExactProbe, Relation, Tensors
from harness.operators.summation import serial_loss
from harness.operators.values import mixed_rows, quantise, signs

PROBE_ROWS = 16
SPARE = 12
"""Columns that complete an exact sum."""


def make_inputs(
    dims: Dims, regimes: tuple[str, ...], dtype: torch.dtype, generator: torch.Generator, attributes: Attributes
) -> Tensors:
    """x [rows, cols] of the regimes, weight [cols] of ``gains``."""
    rows, cols = dims["rows"], dims["cols"]
    values = mixed_rows(regimes_of_rows(regimes), rows, cols, dtype, generator)
    return {"x": quantise(values, dtype), "weight": quantise(gains(regimes, cols, dtype, generator), dtype)}


def reference(inputs: Tensors, attributes: Attributes) -> Tensors:
    """x / sqrt(mean(x^2) + eps) * weight in float64."""
    x, weight = inputs["x"].double(), inputs["weight"].double()
    mean = x.square().mean(-1, keepdim=True)
    return {"out": x * torch.rsqrt(mean + attributes["eps"]) * weight}


def magnitude(inputs: Tensors, attributes: Attributes) -> dict[str, tuple[torch.Tensor, torch.Tensor | float]]:
    """The result's own size: products and a square root keep relative errors small everywhere. The square root halves
    what a serial float32 sum loses beside a large partial sum; the judge counts four roundings per unit."""
    lost = serial_loss(inputs["x"].double().square())
    return {"out": (reference(inputs, attributes)["out"].abs(), lost / 8.0)}


def honest(inputs: Tensors, attributes: Attributes) -> Tensors:
    """Float32 throughout, rounded once to the inputs' dtype."""
    x, weight = inputs["x"].float(), inputs["weight"].float()
    scale = torch.rsqrt(x.square().mean(-1, keepdim=True) + attributes["eps"])
    return {"out": (x * scale * weight).to(inputs["x"].dtype)}


def libraries(inputs: Tensors, attributes: Attributes) -> dict[str, Callable[[], Tensors]]:
    """PyTorch's eager operator."""
    x, weight, eps = inputs["x"], inputs["weight"], attributes["eps"]
    return {"torch eager": lambda: {"out": rms_norm(x, (x.shape[-1],), weight, eps)}}


def relations(inputs: Tensors, attributes: Attributes, generator: torch.Generator) -> list[Relation]:
    """Scaling by powers of two changes exponents only and signs change nothing else, so the bits must follow."""
    x, weight = inputs["x"], inputs["weight"]
    same = dict(attributes)
    half = x.dtype is torch.float16  # a scaled result may leave the normal range there
    power = int(torch.randint(1, 4, (), generator=generator)) * (1 if half or torch.rand((), generator=generator) < 0.5
                                                                 else -1)
    order = torch.randperm(x.shape[-1], generator=generator)
    return [
        Relation(
            f"x times 2^{power} with eps times 4^{power} changes nothing",
            {"x": x * 2.0**power, "weight": weight},
            {**same, "eps": attributes["eps"] * 4.0**power},
            lambda outputs: outputs,
            exact=True,
        ),
        Relation(
            "weight times 2 doubles the result",
            {"x": x, "weight": weight * 2},
            same,
            lambda outputs: {"out": outputs["out"] * 2},
            exact=not half,
        ),
        Relation(
            "minus x gives minus the result", {"x": -x, "weight": weight}, same,
            lambda outputs: {"out": -outputs["out"]}, exact=True,
        ),
        Relation(
            "columns of x and weight permuted alike give permuted columns",
            {"x": x[:, order], "weight": weight[order]}, same,
            lambda outputs: {"out": outputs["out"][:, order]}, exact=False,
        ),
        Relation(
            "rows in another order give results in that order",
            {"x": x.flip(0), "weight": weight},
            same,
            lambda outputs: {"out": outputs["out"].flip(0)},
            exact=False,
        ),
        Relation(
            "rows given twice give results twice", {"x": torch.cat([x, x]), "weight": weight}, same,
            lambda outputs: {"out": torch.cat([outputs["out"], outputs["out"]])}, exact=False,
        ),
    ]


def exact_probes(dims: Dims, dtype: torch.dtype, generator: torch.Generator) -> list[ExactProbe]:
    """Rows of integers over 2^k whose squares average to exactly 1 - 4^-k: with eps = 4^-k the root is 1 and the result
    is x * weight. Products of 16 bits lie beside rounding ties of half precision, so that a sum off by 2^-16 shows."""
    cols = dims["cols"]
    power = min(7, int(math.log2(EXACT / cols)) // 2)
    if cols <= 4 * SPARE or power < 6:
        return []
    total = cols * (4**power - 1)
    rows = [with_square_sum(cols - SPARE, total, 255, 33, SPARE, generator) for _ in range(PROBE_ROWS)]
    found = [row * signs(tuple(row.shape), generator).double() for row in rows if row is not None]
    if not found:
        return []
    # Both factors are odd and at least 6 bits wide, so their product is never a tie itself; the spare columns, which
    # complete the sum, have weight 1 and need no rounding.
    bits = 12 if dtype is torch.float32 else 8
    factors = odd_integers((cols - SPARE,), dtype, generator, bits) / 2.0 ** (bits - 1)
    weight = torch.cat([factors, torch.ones(SPARE, dtype=torch.float64)])
    order = torch.randperm(cols, generator=generator)
    x, weight = (torch.stack(found) / 2.0**power)[:, order], weight[order]
    inputs = {"x": x.to(dtype), "weight": weight.to(dtype)}
    return [ExactProbe("integers with an exact mean square", inputs, {"eps": 4.0**-power},
                       {"out": (x * weight).to(dtype)}, roundings=roundings(cols))]
