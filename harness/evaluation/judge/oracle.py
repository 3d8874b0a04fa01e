"""What the right answer is, and how far from it an honest kernel may be (``allowance``)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from harness.domain.errors import HarnessError
from harness.evaluation.judge.allowance import Allowance, allowance_of
from harness.operators.base import Dims, OperatorSpec, Tolerance
from harness.operators.implementation import Tensors, load_implementation, reference_and_magnitude


class InvalidReference(HarnessError):
    """The reference or the honest implementation fails by the judge's own rules; never the candidate's fault."""

    code = "invalid_reference"


@dataclass(frozen=True, slots=True)
class Expected:
    """One output's answer: float64 values, absolute bound per element, the honest error (largest, absolute) and what
    the bound is made of."""

    values: torch.Tensor
    bound: torch.Tensor
    honest_error: float | None
    allowance: Allowance | None = None

    def rows(self, low: int, high: int) -> Expected:
        """The answer for rows ``low`` to ``high`` of the output alone."""
        allowance = None if self.allowance is None else self.allowance.rows(low, high)
        bound = self.bound.expand_as(self.values)[low:high]
        return replace(self, values=self.values[low:high], bound=bound, allowance=allowance)


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
    reference, magnitudes = reference_and_magnitude(implementation, inputs, attributes)
    honest = implementation.honest(inputs, attributes)
    answers = {}
    for name, values in reference.items():
        scale, conditioning = magnitudes[name]
        length = spec.reduction_length(dims)
        allowance = allowance_of(values, honest[name], scale, conditioning, tolerance, length, relative,
                                 spec.row_factor)
        bound = allowance.bound()
        wrong = (honest[name].double() - values).abs() > bound
        nans = torch.isnan(honest[name]) != torch.isnan(values)
        if relative is None and bool((wrong & torch.isfinite(values) | nans).any()):
            raise InvalidReference(
                f"The honest {dtype} implementation of {spec.name} misses the reference at {dict(dims)}: "
                f"{int(nans.sum())} NaN class(es) and {int(wrong.sum())} value(s) differ. The candidate was not "
                "judged; correct the operator's implementation or the case."
            )
        answers[name] = Expected(values, bound, largest_error(honest[name], values), allowance)
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
    """Absolute bound per element, float64, shape of ``reference``; see ``allowance``."""
    return allowance_of(reference, honest, scale, conditioning, tolerance, length, relative).bound()


def largest_error(values: torch.Tensor, reference: torch.Tensor) -> float | None:
    """Largest absolute error against float64 among finite elements; ``None`` where there are none, and for integers,
    whose distance says nothing."""
    if not values.is_floating_point():
        return None
    error = (values.double() - reference).abs().nan_to_num(-1.0, -1.0)
    largest = float(error.max()) if error.numel() else -1.0
    return largest if largest >= 0.0 else None


def library_errors(
    spec: OperatorSpec, inputs: Tensors, attributes: dict[str, float], answers: dict[str, Expected] | None = None
) -> float | None:
    """Largest error of the operator's first library (PyTorch eager) on these inputs; ``None`` without one. ``answers``
    saves computing the reference again."""
    implementation = load_implementation(spec)
    for compute in implementation.libraries(inputs, attributes).values():
        right = implementation.reference(inputs, attributes) if answers is None else {
            name: answer.values for name, answer in answers.items()}
        outputs = compute()
        errors = [largest_error(outputs[name], values) for name, values in right.items()]
        return max((error for error in errors if error is not None), default=None)
    return None
