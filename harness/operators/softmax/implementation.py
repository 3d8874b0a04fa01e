"""Softmax in torch: inputs, float64 reference, honest implementation and relations."""

from __future__ import annotations

from collections.abc import Callable

import torch

from harness.operators.base import Dims
from harness.operators.exact import roundings, tie_distance
from harness.operators.implementation import Attributes, ExactProbe, Relation, Tensors
from harness.operators.summation import serial_loss
from harness.operators.values import mixed_rows, places, quantise

COUNT_ROWS, COUNT_COLS = 16, 4099
CLEAR = 2.0**-19
"""Nearer to a tie than this, an honest quotient could round either way."""


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
    """Columns and rows may be permuted, a constant added, columns or rows given twice."""
    x = inputs["x"]
    order = torch.randperm(x.shape[-1], generator=generator)
    # Multiples of 1/8 in [-4, 4) stay exact when a whole number up to 11 is added, in every dtype.
    grid = (torch.randint(-32, 32, tuple(x.shape), generator=generator) / 8.0).to(x.dtype)
    shift = float(torch.randint(4, 12, (), generator=generator))
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
        Relation(f"{shift:g} added to every value changes nothing", {"x": grid + shift}, {}, lambda outputs: outputs,
                 exact=False, original={"x": grid}),
        Relation("columns given twice halve every probability", {"x": torch.cat([x, x], 1)}, {},
                 lambda outputs: {"out": torch.cat([outputs["out"], outputs["out"]], 1) / 2}, exact=False),
        Relation("rows given twice give results twice", {"x": torch.cat([x, x])}, {},
                 lambda outputs: {"out": torch.cat([outputs["out"], outputs["out"]])}, exact=False),
    ]


def exact_probes(dims: Dims, dtype: torch.dtype, generator: torch.Generator) -> list[ExactProbe]:
    """One entry 500 above the rest takes all of the probability; equal entries share it evenly, however many."""
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
        _counted(dtype, generator),
    ]


def _counted(dtype: torch.dtype, generator: torch.Generator) -> ExactProbe:
    """Rows where an odd number n of entries share the probability and the others, 500 below, get none of it. n is too
    large to be exact in half precision and 1/n lies beside a rounding tie of the output, so that n off by one shows."""
    counts = torch.arange(COUNT_COLS // 2 | 1, COUNT_COLS + 1, 2, dtype=torch.float64)
    distance = tie_distance(1 / counts, dtype)
    distance[distance < CLEAR] = 1.0
    nearest = counts[distance.argsort()[: 4 * COUNT_ROWS]]
    chosen = nearest[torch.randperm(len(nearest), generator=generator)[:COUNT_ROWS]]
    shared = torch.rand(COUNT_ROWS, COUNT_COLS, generator=generator).argsort(-1) < chosen[:, None]
    right = torch.where(shared, 1 / chosen[:, None], 0.0)
    x = torch.where(shared, 0.0, -500.0)
    return ExactProbe("an odd number of entries share", {"x": x.to(dtype)}, {}, {"out": right.to(dtype)},
                      roundings=roundings(COUNT_COLS))
