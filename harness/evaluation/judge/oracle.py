"""What the right answer is and how far from it an honest kernel may be.

Bound per element, with y64 the float64 reference, s its scale and c its conditioning (``Implementation.magnitude``):

    |y - y64| <= min(max(factor * e_row, ulps * u + (2 sqrt(K) + 4 c) * u32), cap) * s + step

``e_row`` is the largest error relative to s that an honest implementation in the same dtype makes in that row, u the
unit round-off of the output's dtype, u32 that of float32 accumulation, K the reduction length, ``step`` the smallest
magnitude that survives flushing (float16: one subnormal step). The sqrt(K) and c terms allow float32 sums in any order:
a serial sum of K terms errs by about sqrt(K)/3 roundings (measured), so that 2 sqrt(K) is six deviations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from harness.domain.errors import HarnessError
from harness.operators.base import Dims, OperatorSpec, Tolerance
from harness.operators.implementation import Tensors, load_implementation

U32 = 2.0**-24
STEP = {torch.float32: 2.4e-38, torch.bfloat16: 2.4e-38, torch.float16: 6.0e-8}


class InvalidReference(HarnessError):
    """The reference or the honest implementation fails by the judge's own rules; never the candidate's fault."""

    code = "invalid_reference"


@dataclass(frozen=True, slots=True)
class Expected:
    """One output's answer: float64 values, absolute bound per element and the honest error (largest, absolute)."""

    values: torch.Tensor
    bound: torch.Tensor
    honest_error: float | None


def expect(
    spec: OperatorSpec,
    dims: Dims,
    inputs: Tensors,
    attributes: dict[str, float],
    dtype: str,
    relative: float | None = None,
) -> dict[str, Expected]:
    """The answer for every output. ``relative`` is a goal's own tolerance: then the bound is that share of the scale.

    Raises ``InvalidReference`` when the honest implementation disagrees with the reference.
    """
    implementation = load_implementation(spec)
    tolerance = spec.tolerances[dtype]
    reference = implementation.reference(inputs, attributes)
    magnitudes = implementation.magnitude(inputs, attributes)
    honest = implementation.honest(inputs, attributes)
    answers = {}
    for name, values in reference.items():
        scale, conditioning = magnitudes[name]
        bound = bound_of(values, honest[name], scale, conditioning, tolerance, spec.reduction_length(dims), relative)
        wrong = (honest[name].double() - values).abs() > bound
        nans = torch.isnan(honest[name]) != torch.isnan(values)
        if relative is None and bool((wrong & torch.isfinite(values) | nans).any()):
            raise InvalidReference(
                f"The honest {dtype} implementation of {spec.name} misses the reference at {dict(dims)}: "
                f"{int(nans.sum())} NaN class(es) and {int(wrong.sum())} value(s) differ. The candidate was not "
                "judged; correct the operator's implementation or the case."
            )
        answers[name] = Expected(values, bound, largest_error(honest[name], values))
    return answers


def bound_of(
    reference: torch.Tensor,
    honest: torch.Tensor,
    scale: torch.Tensor,
    conditioning: torch.Tensor | float,
    tolerance: Tolerance,
    length: int,
    relative: float | None = None,
) -> torch.Tensor:
    """Absolute bound per element, float64, shape of ``reference``; see the module's docstring."""
    step = STEP[honest.dtype]
    scale = torch.where(torch.isfinite(scale), scale, 0.0)
    if relative is not None:
        return relative * scale + step
    unit = torch.finfo(honest.dtype).eps / 2
    error = (honest.double() - reference).abs() - step
    share = torch.where(torch.isfinite(error) & (scale > 0), error.clamp_min(0.0) / scale.clamp_min(1e-300), 0.0)
    measured = tolerance.factor * share.amax(-1, keepdim=True)
    floor = tolerance.ulps * unit + (2.0 * math.sqrt(length) + 4.0 * conditioning) * U32
    return torch.clamp(torch.maximum(measured, torch.as_tensor(floor)), max=tolerance.cap) * scale + step


def largest_error(values: torch.Tensor, reference: torch.Tensor) -> float | None:
    """Largest absolute error against float64 among finite elements; ``None`` where there are none."""
    error = (values.double() - reference).abs()
    error = error[torch.isfinite(error)]
    return float(error.max()) if error.numel() else None


def library_errors(spec: OperatorSpec, inputs: Tensors, attributes: dict[str, float]) -> float | None:
    """Largest error of the operator's first library (PyTorch eager) on these inputs; ``None`` without one."""
    implementation = load_implementation(spec)
    reference = implementation.reference(inputs, attributes)
    for compute in implementation.libraries(inputs, attributes).values():
        outputs = compute()
        errors = [largest_error(outputs[name], values) for name, values in reference.items()]
        return max((error for error in errors if error is not None), default=None)
    return None
