"""RMSNorm of a sum in torch: inputs, float64 reference, honest implementation and relations.

``out`` may come from the sum or from the sum rounded to the inputs' dtype, as ``residual_out`` holds it: the first is
the reference, and how far the second is from it is allowed for beside the usual bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch.nn.functional import rms_norm

from harness.operators.add_rms_norm.spec import TOLERANCES
from harness.operators.base import Dims
from harness.operators.exact import EXACT, odd_integers, roundings, with_square_sum
from harness.operators.gains import alone, gains, regimes_of_rows
from harness.operators.implementation import Attributes, ExactProbe, Relation, Tensors
from harness.operators.summation import U32, serial_loss
from harness.operators.symmetries import every, only, row_symmetries
from harness.operators.values import mixed_rows, normal, quantise, signs, uniform

CANCELLING, UNEQUAL = "cancelling", "unequal"
PROBE_ROWS = 16
SPARE = 12
"""Columns that complete an exact sum."""


def make_inputs(
    dims: Dims, regimes: tuple[str, ...], dtype: torch.dtype, generator: torch.Generator, attributes: Attributes
) -> Tensors:
    """x and residual [rows, cols], each of the regimes, weight [cols] of ``gains``. No sum overflows.

    Where a regime is alone: ``cancelling`` has residual = -x but for a few roundings, in ``unequal`` x is around a
    rounding of the residual."""
    rows, cols = dims["rows"], dims["cols"]
    regime, unit = alone(regimes), torch.finfo(dtype).eps
    if regime in (CANCELLING, UNEQUAL):
        x = quantise(3.0 * normal((rows, cols), generator), dtype).float()
        few = uniform((rows, cols), generator, -4.0, 4.0)
        residual = -x * (1.0 + few * unit)
        if regime == UNEQUAL:
            x, residual = few * unit * x, x
    else:
        x, residual = (mixed_rows(regimes_of_rows(regimes), rows, cols, dtype, generator) for _ in range(2))
        if regime == "largest_squares":
            x, residual = x / 2, residual / 2
    return {"x": _half(x, dtype), "residual": _half(residual, dtype),
            "weight": quantise(gains(regimes, cols, dtype, generator), dtype)}


def _half(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """``values`` in ``dtype``, finite ones at most half of its range, so that no sum of two leaves it."""
    limit = torch.finfo(dtype).max / 2
    return torch.where(torch.isfinite(values), values.clamp(-limit, limit), values).to(dtype)


def reference(inputs: Tensors, attributes: Attributes) -> Tensors:
    """s = x + residual and s / sqrt(mean(s^2) + eps) * weight in float64."""
    total = inputs["x"].double() + inputs["residual"].double()
    return {"out": _normed(total, inputs["weight"].double(), attributes), "residual_out": total}


def _normed(total: torch.Tensor, weight: torch.Tensor, attributes: Attributes) -> torch.Tensor:
    scale = torch.rsqrt(total.square().mean(-1, keepdim=True) + attributes["eps"])
    return total * scale * weight


def magnitude(inputs: Tensors, attributes: Attributes) -> dict[str, tuple[torch.Tensor, torch.Tensor | float]]:
    """The results' own sizes, what a serial float32 sum loses (halved by the root; the judge counts four roundings per
    unit), and the step from the sum to the rounded sum, which no cap may take away."""
    right = reference(inputs, attributes)
    out, total = right["out"], right["residual_out"]
    dtype = inputs["x"].dtype
    rounded = _normed(total.to(dtype).double(), inputs["weight"].double(), attributes)
    step = (rounded - out).abs().nan_to_num(0.0, 0.0)
    scale = out.abs() + step / TOLERANCES[str(dtype).removeprefix("torch.")].cap
    passed_on = (step / (4.0 * U32 * scale).clamp_min(1e-300)).nan_to_num(0.0, 0.0)
    return {"out": (scale, passed_on + serial_loss(total.square()) / 8.0), "residual_out": (total.abs(), 0.0)}


def honest(inputs: Tensors, attributes: Attributes) -> Tensors:
    """Float32 throughout, each output rounded once to the inputs' dtype."""
    total = inputs["x"].float() + inputs["residual"].float()
    dtype = inputs["x"].dtype
    return {"out": _normed(total, inputs["weight"].float(), attributes).to(dtype), "residual_out": total.to(dtype)}


def libraries(inputs: Tensors, attributes: Attributes) -> dict[str, Callable[[], Tensors]]:
    """PyTorch's eager addition and operator, the norm of the rounded sum."""
    def eager() -> Tensors:
        total = inputs["x"] + inputs["residual"]
        return {"out": rms_norm(total, (total.shape[-1],), inputs["weight"], attributes["eps"]), "residual_out": total}

    return {"torch eager": eager}


def relations(inputs: Tensors, attributes: Attributes, generator: torch.Generator) -> list[Relation]:
    """Only the sum counts, powers of two change exponents only, signs change nothing else: the bits must follow."""
    x, residual, weight = inputs["x"], inputs["residual"], inputs["weight"]
    same, half = dict(attributes), x.dtype is torch.float16  # a scaled result may leave the normal range there
    power = int(torch.randint(1, 4, (), generator=generator)) * (1 if half or torch.rand((), generator=generator) < 0.5
                                                                 else -1)
    # Multiples of 1/8 in [-4, 4) stay exact when a whole number up to 11 is added, in every dtype; so do their sums.
    left, right = ((torch.randint(-32, 32, tuple(x.shape), generator=generator) / 8.0).to(x.dtype) for _ in range(2))
    shift = float(torch.randint(4, 12, (), generator=generator))
    return [
        Relation("x and residual may change places", {**inputs, "x": residual, "residual": x}, same, every(lambda v: v),
                 exact=True),
        Relation(f"{shift:g} moved from residual to x changes nothing",
                 {**inputs, "x": left + shift, "residual": right - shift}, same, every(lambda v: v), exact=True,
                 original={**inputs, "x": left, "residual": right}),
        Relation(f"x and residual times 2^{power} with eps times 4^{power} change the sum alone",
                 {**inputs, "x": x * 2.0**power, "residual": residual * 2.0**power},
                 {**same, "eps": attributes["eps"] * 4.0**power}, only("residual_out", lambda v: v * 2.0**power),
                 exact=True),
        Relation("weight times 2 doubles out alone", {**inputs, "weight": weight * 2}, same,
                 only("out", lambda v: v * 2), exact=not half),
        Relation("minus both gives minus the results", {**inputs, "x": -x, "residual": -residual}, same,
                 every(torch.neg), exact=True),
        *row_symmetries(inputs, attributes, generator),
    ]


def exact_probes(dims: Dims, dtype: torch.dtype, generator: torch.Generator) -> list[ExactProbe]:
    """Sums that have to be rounded once, and rows as in rms_norm: integers over 2^k whose sums' squares average to
    exactly 1 - 4^-k, so that with eps = 4^-k out is sum * weight, beside rounding ties of half precision."""
    rows, cols = dims["rows"], dims["cols"]
    # Within the exponents here the sum of two half-precision numbers is exact in float32: one rounding is left.
    x = quantise(normal((rows, cols), generator), dtype)
    smaller = 2.0 ** -torch.randint(0, 7, (rows, cols), generator=generator)
    residual = quantise(normal((rows, cols), generator) * smaller, dtype)
    weight = quantise(1.0 + 0.5 * normal((cols,), generator), dtype)
    total = (x.float() + residual.float()).to(dtype)
    sums = ExactProbe("sums rounded once", {"x": x, "residual": residual, "weight": weight}, {"eps": 1e-5},
                      {"residual_out": total})
    return [sums, *_integers(cols, dtype, generator)]


def _integers(cols: int, dtype: torch.dtype, generator: torch.Generator) -> list[ExactProbe]:
    power = min(7, int(math.log2(EXACT / cols)) // 2)
    if cols <= 4 * SPARE or power < 6:
        return []
    wanted = cols * (4**power - 1)
    drawn = [with_square_sum(cols - SPARE, wanted, 255, 33, SPARE, generator) for _ in range(PROBE_ROWS)]
    found = [row * signs(tuple(row.shape), generator).double() for row in drawn if row is not None]
    if not found:
        return []
    total = torch.stack(found)
    low, high = (total - 255.0).clamp_min(-255.0), (total + 255.0).clamp_max(255.0)  # where both parts have 8 bits
    part = (low + torch.rand(total.shape, generator=generator).double() * (high - low)).round()
    # Odd factors of 6 bits at least, whose product is never a tie; the spare columns have weight 1 and round nothing.
    bits = 12 if dtype is torch.float32 else 8
    factors = odd_integers((cols - SPARE,), dtype, generator, bits) / 2.0 ** (bits - 1)
    weight = torch.cat([factors, torch.ones(SPARE, dtype=torch.float64)])
    order = torch.randperm(cols, generator=generator)
    x, residual, total = ((values / 2.0**power)[:, order] for values in (total - part, part, total))
    weight = weight[order]
    inputs = {"x": x.to(dtype), "residual": residual.to(dtype), "weight": weight.to(dtype)}
    right = {"out": (total * weight).to(dtype), "residual_out": total.to(dtype)}
    return [ExactProbe("integers with an exact mean square", inputs, {"eps": 4.0**-power}, right,
                       roundings=roundings(cols))]
