"""Softmax in torch: inputs, float64 reference, honest implementation and relations."""

from __future__ import annotations

from collections.abc import Callable

import torch

from harness.operators.base import Dims
from harness.operators.implementation import Attributes, ExactProbe, Relation, Tensors
from harness.operators.summation import serial_loss
from harness.operators.values import mixed_rows, places, quantise


def make_inputs(
    dims: Dims, regimes: tuple[str, ...], dtype: torch.dtype, generator: torch.Generator, attributes: Attributes
) -> Tensors:
    """x [rows, cols] of the regimes."""
    return {"x": quantise(mixed_rows(regimes, dims["rows"], dims["cols"], dtype, generator), dtype)}


def reference(inputs: Tensors, attributes: Attributes) -> Tensors:
    """exp(x - max) / sum(exp(x - max)) in float64; a row of -inf gives NaN."""
    x = inputs["x"].double()
    powers = torch.exp(x - x.amax(-1, keepdim=True))
    return {"out": powers / powers.sum(-1, keepdim=True)}


def magnitude(inputs: Tensors, attributes: Attributes) -> dict[str, tuple[torch.Tensor, torch.Tensor | float]]:
    """The probability itself; an exponential turns one rounding of its argument a into |a| roundings of its value, and
    a serial float32 sum loses small terms; the judge counts four roundings per unit."""
    x = inputs["x"].double()
    shares = reference(inputs, attributes)["out"]
    distance = (x - x.amax(-1, keepdim=True)).abs().nan_to_num(0.0, 0.0)
    return {"out": (shares, distance + serial_loss(shares) / 4.0)}


def honest(inputs: Tensors, attributes: Attributes) -> Tensors:
    """Float32 throughout, rounded once to the inputs' dtype."""
    x = inputs["x"].float()
    powers = torch.exp(x - x.amax(-1, keepdim=True))
    return {"out": (powers / powers.sum(-1, keepdim=True)).to(inputs["x"].dtype)}


def libraries(inputs: Tensors, attributes: Attributes) -> dict[str, Callable[[], Tensors]]:
    """PyTorch's eager operator."""
    x = inputs["x"]
    return {"torch eager": lambda: {"out": torch.softmax(x, -1)}}


def relations(inputs: Tensors, attributes: Attributes, generator: torch.Generator) -> list[Relation]:
    """Columns and rows may be permuted."""
    x = inputs["x"]
    order = torch.randperm(x.shape[-1], generator=generator)
    return [
        Relation(
            "permuted columns give permuted probabilities",
            {"x": x[:, order]},
            {},
            lambda outputs: {"out": outputs["out"][:, order]},
            exact=False,
        ),
        Relation(
            "rows in another order give results in that order",
            {"x": x.flip(0)},
            {},
            lambda outputs: {"out": outputs["out"].flip(0)},
            exact=False,
        ),
    ]


def exact_probes(dims: Dims, dtype: torch.dtype, generator: torch.Generator) -> list[ExactProbe]:
    """One entry 500 above the rest takes all of the probability; 2^k equal entries share it evenly."""
    rows, cols = dims["rows"], dims["cols"]
    peak = torch.zeros(rows, cols)
    peak[torch.arange(rows), places(rows, cols, generator)] = 1.0
    width = 1 << max(cols.bit_length() - 1, 0)
    level = torch.randint(-32, 32, (rows, 1), generator=generator).float().expand(rows, width)
    return [
        ExactProbe("one entry takes all", {"x": (peak * 500).to(dtype)}, {}, {"out": peak.to(dtype)}),
        ExactProbe(
            f"{width} equal entries",
            {"x": level.to(dtype)},
            {},
            {"out": torch.full((rows, width), 1 / width).to(dtype)},
        ),
    ]
