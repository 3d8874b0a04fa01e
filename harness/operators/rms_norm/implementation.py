"""RMSNorm in torch: inputs, float64 reference, honest implementation and relations. Formula: Zhang & Sennrich 2019."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn.functional import rms_norm

from harness.operators.base import Dims
from harness.operators.implementation import Attributes, ExactProbe, Relation, Tensors
from harness.operators.summation import serial_loss
from harness.operators.values import mixed_rows, normal, quantise


def make_inputs(
    dims: Dims, regimes: tuple[str, ...], dtype: torch.dtype, generator: torch.Generator, attributes: Attributes
) -> Tensors:
    """x [rows, cols] of the regimes, weight [cols] around 1 with both signs possible."""
    values = mixed_rows(regimes, dims["rows"], dims["cols"], dtype, generator)
    weight = 1.0 + 0.5 * normal((dims["cols"],), generator)
    return {"x": quantise(values, dtype), "weight": quantise(weight, dtype)}


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
    """Scaling by powers of two changes exponents only, so the bits must follow."""
    x, weight = inputs["x"], inputs["weight"]
    same = dict(attributes)
    return [
        Relation(
            "x times 4 with eps times 16 changes nothing",
            {"x": x * 4, "weight": weight},
            {**same, "eps": attributes["eps"] * 16},
            lambda outputs: outputs,
            exact=True,
        ),
        Relation(
            "weight times 2 doubles the result",
            {"x": x, "weight": weight * 2},
            same,
            lambda outputs: {"out": outputs["out"] * 2},
            exact=x.dtype is not torch.float16,
        ),
        Relation(
            "rows in another order give results in that order",
            {"x": x.flip(0), "weight": weight},
            same,
            lambda outputs: {"out": outputs["out"].flip(0)},
            exact=False,
        ),
    ]


def exact_probes(dims: Dims, dtype: torch.dtype, generator: torch.Generator) -> list[ExactProbe]:
    """None: the square root rounds for every input where eps matters."""
    return []
