"""Layer normalisation in torch: inputs, float64 reference, honest implementation, relations. Formula: Ba et al. 2016.

The mean is what makes its error special: it is off by roundings of the values' size, whatever is left of them when it
has been taken away. Bounds therefore count the mean size of a row besides its deviations, at float32's precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch.nn.functional import layer_norm

from harness.operators.base import Dims
from harness.operators.exact import EXACT, odd_integers, roundings, with_square_sum
from harness.operators.gains import SPECIAL, alone, gains, regimes_of_rows, with_specials
from harness.operators.implementation import Attributes, ExactProbe, Relation, Tensors
from harness.operators.layer_norm.spec import TOLERANCES
from harness.operators.summation import U32, serial_loss
from harness.operators.symmetries import every, row_symmetries
from harness.operators.values import mixed_rows, quantise, signs

PROBE_ROWS = 16
SPARE = 12
"""Columns of each half that complete an exact sum."""
POWER = 6
LARGEST_SQUARES = "largest_squares"
FAINT_MEAN = 8.0
"""Roundings of the mean beside those of its sum: a division, a conversion, joining of parts."""


def make_inputs(
    dims: Dims, regimes: tuple[str, ...], dtype: torch.dtype, generator: torch.Generator, attributes: Attributes
) -> Tensors:
    """x [rows, cols] of the regimes, weight [cols] of ``gains``, bias [cols] around 0, as large as the weights.

    In ``special_weights`` bias holds NaN and infinities, too, and x is not near its mean where weight does."""
    rows, cols = dims["rows"], dims["cols"]
    x = mixed_rows(regimes_of_rows(regimes), rows, cols, dtype, generator)
    weight = gains(regimes_of_rows(regimes), cols, dtype, generator)
    bias = gains(regimes_of_rows(regimes), cols, dtype, generator) - 1.0
    if alone(regimes) == LARGEST_SQUARES:  # means of parts are joined by squares times the counts of two parts
        x = x / 16.0
    if alone(regimes) == SPECIAL:
        order = torch.randperm(cols, generator=generator)
        places = with_specials(weight, order)
        with_specials(bias, order[len(places) :])
        x[:, places] += 0.5 * x[:, places].sign()  # the sign of 0 times infinity would hang on a rounding
    return {"x": quantise(x, dtype), "weight": quantise(weight, dtype), "bias": quantise(bias, dtype)}


def _parts(inputs: Tensors, attributes: Attributes) -> tuple[torch.Tensor, torch.Tensor]:
    """Deviations from the mean [rows, cols] and 1 / sqrt(variance + eps) [rows, 1] in float64."""
    x = inputs["x"].double()
    centred = x - x.mean(-1, keepdim=True)
    return centred, torch.rsqrt(centred.square().mean(-1, keepdim=True) + attributes["eps"])


def reference(inputs: Tensors, attributes: Attributes) -> Tensors:
    """(x - mean) / sqrt(mean((x - mean)^2) + eps) * weight + bias in float64."""
    centred, scale = _parts(inputs, attributes)
    return {"out": centred * scale * inputs["weight"].double() + inputs["bias"].double()}


def magnitude(inputs: Tensors, attributes: Attributes) -> dict[str, tuple[torch.Tensor, torch.Tensor | float]]:
    """The sizes of both terms, and of the row's values as far as float32 roundings of the mean reach: for an output in
    half precision that is a small share of them. What a serial float32 sum loses counts besides; the judge counts four
    roundings per unit, and the root halves what the squares lose."""
    x, weight = inputs["x"].double(), inputs["weight"].double().abs()
    centred, scale = _parts(inputs, attributes)
    dtype = inputs["x"].dtype
    unit = TOLERANCES[str(dtype).removeprefix("torch.")].ulps * torch.finfo(dtype).eps / 2
    share = min(1.0, (2.0 * math.sqrt(x.shape[-1]) + FAINT_MEAN) * U32 / unit)
    size = (centred.abs() + share * x.abs().mean(-1, keepdim=True)) * scale * weight + inputs["bias"].double().abs()
    return {"out": (size, serial_loss(centred.square()) / 8.0 + serial_loss(x.abs()) / 4.0)}


def honest(inputs: Tensors, attributes: Attributes) -> Tensors:
    """Two passes in float32, rounded once to the inputs' dtype."""
    x = inputs["x"].float()
    centred = x - x.mean(-1, keepdim=True)
    scale = torch.rsqrt(centred.square().mean(-1, keepdim=True) + attributes["eps"])
    return {"out": (centred * scale * inputs["weight"].float() + inputs["bias"].float()).to(inputs["x"].dtype)}


def libraries(inputs: Tensors, attributes: Attributes) -> dict[str, Callable[[], Tensors]]:
    """PyTorch's eager operator."""
    x, weight, bias, eps = inputs["x"], inputs["weight"], inputs["bias"], attributes["eps"]
    return {"torch eager": lambda: {"out": layer_norm(x, (x.shape[-1],), weight, bias, eps)}}


def relations(inputs: Tensors, attributes: Attributes, generator: torch.Generator) -> list[Relation]:
    """Powers of two change exponents only and signs change nothing else, so the bits must follow; a constant added to a
    row changes nothing but roundings."""
    x, weight, bias = inputs["x"], inputs["weight"], inputs["bias"]
    same, half = dict(attributes), x.dtype is torch.float16  # a scaled result may leave the normal range there
    power = int(torch.randint(1, 4, (), generator=generator)) * (1 if half or torch.rand((), generator=generator) < 0.5
                                                                 else -1)
    # Multiples of 1/8 in [-4, 4) stay exact when a whole number up to 11 is added, in every dtype.
    grid = (torch.randint(-32, 32, tuple(x.shape), generator=generator) / 8.0).to(x.dtype)
    shift = float(torch.randint(4, 12, (), generator=generator))
    return [
        Relation(f"x times 2^{power} with eps times 4^{power} changes nothing", {**inputs, "x": x * 2.0**power},
                 {**same, "eps": attributes["eps"] * 4.0**power}, lambda outputs: outputs, exact=True),
        Relation("weight and bias times 2 double the result", {**inputs, "weight": weight * 2, "bias": bias * 2}, same,
                 every(lambda v: v * 2), exact=not half),
        Relation("minus x and minus bias give minus the result", {**inputs, "x": -x, "bias": -bias}, same,
                 every(torch.neg), exact=True),
        Relation(f"{shift:g} added to every value changes nothing", {**inputs, "x": grid + shift}, same,
                 lambda outputs: outputs, exact=False, original={**inputs, "x": grid}),
        *row_symmetries(inputs, attributes, generator),
    ]


def exact_probes(dims: Dims, dtype: torch.dtype, generator: torch.Generator) -> list[ExactProbe]:
    """Rows of m + d over 2^6, m whole and even, d odd and in pairs of opposite sign, whose squares average to exactly
    4^6 - 1: the mean is m, and with eps = 4^-6 the root is 1 and the result d * weight + bias. In units of 2^-13 that
    is an odd number of 13 bits at least, so never a rounding tie of half precision but often beside one.

    Exact are sums of x and of squares about m. A kernel that takes another point than the mean first (an anchor, means
    of parts) adds squares on a finer grid, all of which a serial sum may round the same way, by half a unit of its
    last place: cols / 2 roundings of the variance, half of that in float32's answer."""
    cols = dims["cols"] - dims["cols"] % 2
    half = cols // 2
    if half <= 4 * SPARE or cols * 4**POWER > EXACT:
        return []
    wanted = half * (4**POWER - 1)
    drawn = [with_square_sum(half - SPARE, wanted, 127, 33, SPARE, generator) for _ in range(PROBE_ROWS)]
    found = [row for row in drawn if row is not None]
    if not found:
        return []
    above = torch.stack(found)
    above = above * signs(tuple(above.shape), generator).double()
    mean = 2.0 * torch.randint(32, 65, (len(found), 1), generator=generator) * signs((len(found), 1), generator)
    bits = 12 if dtype is torch.float32 else 8
    factors = odd_integers((2, half - SPARE), dtype, generator, bits) / 2.0 ** (bits - 1)
    # Well above d * weight, or nothing; the spare columns complete the sum and have weight 0.
    lifts = odd_integers((2, half), dtype, generator, 8) / 16.0 * (torch.rand(2, half, generator=generator) < 0.5)
    lifts[:, half - SPARE :] = 8.0
    weight = torch.cat([factors, torch.zeros(2, SPARE, dtype=torch.float64)], 1).flatten()
    order = torch.randperm(cols, generator=generator)
    apart = (torch.cat([above, -above], 1) / 2.0**POWER)[:, order]
    weight, bias = weight[order], lifts.flatten()[order]
    inputs = {"x": (apart + mean.double() / 2.0**POWER).to(dtype), "weight": weight.to(dtype), "bias": bias.to(dtype)}
    return [ExactProbe("integers with an exact mean and variance", inputs, {"eps": 4.0**-POWER},
                       {"out": (apart * weight + bias).to(dtype)}, roundings=roundings(cols) + cols / 4)]
