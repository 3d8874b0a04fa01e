"""Matrix product, bias and tanh-approximated GELU in torch: inputs, float64 reference, honest implementation.

The approximation is that of Hendrycks & Gimpel 2016: 0.5 s (1 + tanh(sqrt(2 / pi) (s + 0.044715 s^3))).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn.functional import gelu

from harness.operators.base import Dims
from harness.operators.implementation import Attributes, Tensors
from harness.operators.matmul_bias_gelu.probes import exact_probes, relations
from harness.operators.values import mixed_rows, normal, places, quantise, rows_of, signs, uniform

SWEEP = "sweep"
STEEPEST = 1.13
"""The largest slope of the approximated GELU, near s = 1.4: what an error of the sum is multiplied by at most."""
FLOOR = {torch.float32: 2.0**-5, torch.bfloat16: 2.0**-9, torch.float16: 2.0**-8}
"""Share of sum |a b| + |bias| that a result counts as at least. Times the cap of the dtype's tolerance it is more than
any float32 sum of up to 16,384 terms loses, so that the cap never cuts into that."""

REACHED = 5e4
"""Sums in float16 stay below this, biases aside."""
DEVIATIONS = 6.0
"""Rows of a may meet another normal b than their own one: the judge joins rows of several regimes. Their sums deviate
by |a| / sqrt(k); so many deviations reach ``REACHED`` at most, and 7.9 would leave float16 (once in 10^14)."""


def make_inputs(
    dims: Dims, regimes: tuple[str, ...], dtype: torch.dtype, generator: torch.Generator, attributes: Attributes
) -> Tensors:
    """a [m, k] of the regimes row by row, b [k, n] normal, scaled so that sums are a few units large, bias [n] normal.

    Alone: ``sweep`` makes every row of a pick one row of b, whose values go from -6 to 6; ``b_nan`` puts a NaN into one
    column of b, ``b_wide`` gives b magnitudes from 1e-4 to 1e4, ``bias_large`` biases of both signs up to 1e3.
    """
    m, k, n = dims["m"], dims["k"], dims["n"]
    alone = regimes[0] if len(regimes) == 1 else None
    b, bias = normal((k, n), generator) * k**-0.5, normal((n,), generator)
    if alone == SWEEP:
        a = torch.zeros(m, k)
        a[torch.arange(m), places(m, k, generator)] = signs((m,), generator)
        b, bias = uniform((k, n), generator, -6.0, 6.0), bias * 0.05
    elif alone in ("b_nan", "b_wide", "bias_large"):
        a = normal((m, k), generator)
        if alone == "b_nan":
            b[places(1, k, generator), places(1, n, generator)] = torch.nan
        elif alone == "b_wide":
            b = rows_of("wide", k, n, dtype, generator) * (0.1 if dtype is torch.float16 else 1.0)
        else:
            bias = signs((n,), generator) * uniform((n,), generator, 1e2, 1e3)
    else:
        a = mixed_rows(regimes, m, k, dtype, generator)
    if dtype is torch.float16:  # whose range sums of few large terms would leave
        own = (a @ b).abs().nan_to_num(0.0, 0.0).amax(1, keepdim=True)
        another = DEVIATIONS * k**-0.5 * a.nan_to_num(0.0, 0.0).norm(dim=1, keepdim=True)
        a = a * (REACHED / torch.maximum(own, another).clamp_min(REACHED))
    return {"a": quantise(a, dtype), "b": quantise(b, dtype), "bias": quantise(bias, dtype)}


def _sums(inputs: Tensors, dtype: torch.dtype) -> torch.Tensor:
    return inputs["a"].to(dtype) @ inputs["b"].to(dtype) + inputs["bias"].to(dtype)


def reference(inputs: Tensors, attributes: Attributes) -> Tensors:
    """GELU of a @ b + bias in float64."""
    return {"out": gelu(_sums(inputs, torch.float64), approximate="tanh")}


def magnitude(inputs: Tensors, attributes: Attributes) -> dict[str, tuple[torch.Tensor, torch.Tensor | float]]:
    """The result's own size, with a small share of sum |a b| + |bias| where terms cancel or GELU is nearly 0.

    An error of the float32 sum refers to that sum of absolute terms, whatever the result: it is the conditioning. The
    judge counts four roundings per unit, so that 2 sqrt(k) roundings of the sum times the steepest slope are allowed,
    and two for 1 + tanh, which cancels where s is far below 0.
    """
    a, b, bias = (inputs[name].double().abs() for name in ("a", "b", "bias"))
    total = a @ b + bias
    scale = reference(inputs, attributes)["out"].abs() + FLOOR[inputs["a"].dtype] * total
    roundings = 2.0 * STEEPEST * (a.shape[1] + 1) ** 0.5 + 2.0
    share = (total / scale.clamp_min(torch.finfo(torch.float64).tiny)).nan_to_num(0.0, 0.0, 0.0)
    return {"out": (scale, roundings / 4.0 * share)}


def honest(inputs: Tensors, attributes: Attributes) -> Tensors:
    """Float32 sums and GELU, rounded once to the inputs' dtype."""
    return {"out": gelu(_sums(inputs, torch.float32), approximate="tanh").to(inputs["a"].dtype)}


def libraries(inputs: Tensors, attributes: Attributes) -> dict[str, Callable[[], Tensors]]:
    """PyTorch's product with bias (one call of the BLAS library), then its GELU."""
    a, b, bias = inputs["a"], inputs["b"], inputs["bias"]
    return {"torch addmm and gelu": lambda: {"out": gelu(torch.addmm(bias, a, b), approximate="tanh")}}


__all__ = ["exact_probes", "honest", "libraries", "magnitude", "make_inputs", "reference", "relations"]
