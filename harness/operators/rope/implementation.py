"""Rotary position embedding in torch: inputs, float64 reference, honest implementation, relations. Su et al. 2021."""

from __future__ import annotations

from collections.abc import Callable

import torch

from harness.operators.base import Dims
from harness.operators.exact import odd_integers
from harness.operators.gains import alone, with_specials
from harness.operators.implementation import Attributes, ExactProbe, Relation, Tensors
from harness.operators.symmetries import every
from harness.operators.values import mixed_rows, normal, quantise, signs, uniform

FREE, SPECIAL = "free_angles", "special_angles"
"""Regimes of cos and sin; the heads beside them are normal."""
BASE = 10_000.0
"""A pair's angle falls from 1 per position for the first pair to 1/BASE for the last, as in Llama and RoFormer."""
FARTHEST = 100_000.0
NAMES = (("q", "q_out"), ("k", "k_out"))


def make_inputs(
    dims: Dims, regimes: tuple[str, ...], dtype: torch.dtype, generator: torch.Generator, attributes: Attributes
) -> Tensors:
    """q and k, every head a row of the regimes; cos and sin [seq, half] of consecutive positions from a random one on.

    Where a regime is alone: angles of ``free_angles`` are no angles but any numbers, those of ``special_angles`` hold
    NaN and infinities (heads are normal beside both)."""
    batch, seq, half = dims["batch"], dims["seq"], dims["half"]
    only = alone(regimes)
    rows = ("normal",) if only in (FREE, SPECIAL) else regimes
    made: Tensors = {}
    for name, heads in (("q", dims["q_heads"]), ("k", dims["kv_heads"])):
        values = mixed_rows(rows, batch * seq * heads, 2 * half, dtype, generator)
        if dtype is torch.float16 and only == "largest":
            values *= 0.5  # two of the largest leave its range together
        made[name] = quantise(values, dtype).view(batch, seq, heads, 2 * half)
    cos, sin = _angles(seq, half, generator)
    if only == FREE:
        cos, sin = normal((seq, half), generator) * 3.0, normal((seq, half), generator) * 3.0
    elif only == SPECIAL:
        for values in (cos, sin):
            with_specials(values.view(-1), torch.randperm(seq * half, generator=generator))
    return {**made, "cos": quantise(cos, dtype), "sin": quantise(sin, dtype)}


def _angles(seq: int, half: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    first = uniform((1,), generator, 0.0, FARTHEST).double()
    places = first + torch.arange(seq, dtype=torch.float64)
    angles = places[:, None] * BASE ** (-torch.arange(half, dtype=torch.float64) / half)
    return angles.cos().float(), angles.sin().float()


def _turned(inputs: Tensors, dtype: torch.dtype, sign: float = -1.0) -> Tensors:
    """Both outputs, computed in ``dtype``; ``sign`` is that of the second half's share in the first."""
    cos, sin = (inputs[name].to(dtype)[None, :, None] for name in ("cos", "sin"))
    outputs = {}
    for name, target in NAMES:
        left, right = inputs[name].to(dtype).chunk(2, -1)
        outputs[target] = torch.cat([left * cos + sign * (right * sin), right * cos + left * sin], -1)
    return outputs


def reference(inputs: Tensors, attributes: Attributes) -> Tensors:
    """(x1 cos - x2 sin, x2 cos + x1 sin) in float64."""
    return _turned(inputs, torch.float64)


def magnitude(inputs: Tensors, attributes: Attributes) -> dict[str, tuple[torch.Tensor, torch.Tensor | float]]:
    """|x1 cos| + |x2 sin|: where the products cancel, their roundings stay."""
    sizes = {name: values.double().abs() for name, values in inputs.items()}
    scales = _turned(sizes, torch.float64, sign=1.0)
    return {target: (scale, 0.0) for target, scale in scales.items()}


def honest(inputs: Tensors, attributes: Attributes) -> Tensors:
    """Float32 throughout, rounded once to the inputs' dtype."""
    return {name: values.to(inputs["q"].dtype) for name, values in _turned(inputs, torch.float32).items()}


def libraries(inputs: Tensors, attributes: Attributes) -> dict[str, Callable[[], Tensors]]:
    """PyTorch's eager operators in the inputs' dtype, as model code has them."""
    return {"torch eager": lambda: _turned(inputs, inputs["q"].dtype)}


def relations(inputs: Tensors, attributes: Attributes, generator: torch.Generator) -> list[Relation]:
    """Heads, positions and sequences may change places; scaling and turning commute with the rotation."""
    heads = {name: inputs[name] for name, _ in NAMES}
    angles = {name: inputs[name] for name in ("cos", "sin")}
    half = inputs["q"].dtype is torch.float16  # a scaled result may leave the normal range there
    power = int(torch.randint(1, 4, (), generator=generator)) * (1 if torch.rand((), generator=generator) < 0.5 else -1)
    order = torch.randperm(angles["cos"].shape[0], generator=generator)

    def scaled(values: torch.Tensor) -> torch.Tensor:
        return values * 2.0**power

    def reversed_heads(values: torch.Tensor) -> torch.Tensor:
        return values.flip(2)

    def moved(values: torch.Tensor) -> torch.Tensor:
        return values[:, order]

    def twice(values: torch.Tensor) -> torch.Tensor:
        return torch.cat([values, values])

    def quarter(values: torch.Tensor) -> torch.Tensor:
        left, right = values.chunk(2, -1)
        return torch.cat([-right, left], -1)

    def swapped(values: torch.Tensor) -> torch.Tensor:
        return torch.cat(values.chunk(2, -1)[::-1], -1)

    permuted = {name: values[order] for name, values in angles.items()}
    return [
        Relation(f"q and k times 2^{power} change the exponent alone", {**every(scaled)(heads), **angles}, {},
                 every(scaled), exact=not half),
        Relation("minus q and k give minus the result", {**every(torch.neg)(heads), **angles}, {}, every(torch.neg),
                 exact=True),
        Relation("heads in reverse order", {**every(reversed_heads)(heads), **angles}, {}, every(reversed_heads),
                 exact=False),
        Relation("positions permuted with their angles", {**every(moved)(heads), **permuted}, {}, every(moved),
                 exact=False),
        Relation("sequences given twice", {**every(twice)(heads), **angles}, {}, every(twice), exact=False),
        Relation("a quarter turn before or after", {**every(quarter)(heads), **angles}, {}, every(quarter),
                 exact=False),
        Relation("halves swapped, angles backwards", {**every(swapped)(heads), **angles, "sin": -angles["sin"]}, {},
                 every(swapped), exact=False),
    ]


def exact_probes(dims: Dims, dtype: torch.dtype, generator: torch.Generator) -> list[ExactProbe]:
    """Quarter turns only move values and change signs. Odd integers times an odd and an even one have a sum that is odd
    and exact in float32; it is wider than half precision and never a rounding tie of it, so that a product rounded
    before the sum shows."""
    wide = (12, 11) if dtype is torch.float32 else (8, 8)
    return [_quarters(dims, dtype, generator)] + [
        _integers(dims, dtype, generator, bits, name)
        for bits, name in zip(dict.fromkeys((wide, wide[::-1])), ("wide heads", "wide angles"), strict=False)
    ]


def _shapes(dims: Dims) -> dict[str, tuple[int, ...]]:
    seq, half = dims["seq"], dims["half"]
    return {"q": (dims["batch"], seq, dims["q_heads"], 2 * half), "k": (dims["batch"], seq, dims["kv_heads"], 2 * half),
            "cos": (seq, half), "sin": (seq, half)}


def _quarters(dims: Dims, dtype: torch.dtype, generator: torch.Generator) -> ExactProbe:
    shapes = _shapes(dims)
    turns = torch.randint(0, 4, shapes["cos"], generator=generator)
    inputs = {
        "q": normal(shapes["q"], generator).to(dtype), "k": normal(shapes["k"], generator).to(dtype),
        "cos": torch.tensor([1.0, 0.0, -1.0, 0.0])[turns].to(dtype),
        "sin": torch.tensor([0.0, 1.0, 0.0, -1.0])[turns].to(dtype),
    }
    return ExactProbe("quarter turns", inputs, {}, honest(inputs, {}))


def _integers(
    dims: Dims, dtype: torch.dtype, generator: torch.Generator, bits: tuple[int, int], name: str
) -> ExactProbe:
    """Heads of ``bits[0]`` bits and cosines of ``bits[1]``, sines one bit less and even; scaled into the range."""
    shapes = _shapes(dims)
    widths = {"q": bits[0], "k": bits[0], "cos": bits[1], "sin": bits[1] - 1}
    inputs = {}
    for key, shape in shapes.items():
        values = odd_integers(shape, dtype, generator, widths[key]) * signs(shape, generator)
        inputs[key] = ((values * 2.0 if key == "sin" else values) / 2.0 ** (bits[1] if key in ("cos", "sin") else 0)
                       ).to(dtype)
    right = reference(inputs, {})
    return ExactProbe(f"odd sums of exact products, {name}", inputs, {},
                      {key: values.to(dtype) for key, values in right.items()})
