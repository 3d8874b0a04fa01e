"""How far from the reference an output may be, and why. Pure.

Bound per element, with y64 the float64 reference, s its scale and c its conditioning (``Implementation.magnitude``):

    |y - y64| <= min(max(factor * e_row, ulps * u + (2 sqrt(K) + 4 c) * u32), cap) * s + step

``e_row`` is the largest error relative to s that an honest implementation in the same dtype makes in that row, u the
unit round-off of the output's dtype, u32 that of float32 accumulation, K the reduction length, ``step`` the smallest
magnitude that survives flushing (float16: one subnormal step). The sqrt(K) and c terms allow float32 sums in any order:
a serial sum of K terms errs by about sqrt(K)/3 roundings (measured), so that 2 sqrt(K) is six deviations.

Where all elements of a row are multiplied by one factor that comes from the row's sum (``OperatorSpec.row_factor``),
the sum errs for all of them alike. In float32, whose own roundings are not far coarser, some factor 1 + f must then
exist for every row, such that what is left is within the bound without the sqrt(K) term:

    |y - y64 (1 + f)| <= max(factor * e_row, ulps * u + (ln(K) + 4 c) * u32) * s + step

ln(K) is for kernels that take the sum's logarithm into the exponent, where it is rounded element by element.

Where values are only chosen (``Tolerance.exact``), and for integers always, nothing is allowed: the bound is 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch

from harness.domain.verdict import Bound
from harness.operators.base import Tolerance

U32 = 2.0**-24
LONG = 64
"""From this reduction length on the sqrt(K) term outweighs the others."""
STEP = {torch.float32: 2.4e-38, torch.bfloat16: 2.4e-38, torch.float16: 6.0e-8}


@dataclass(frozen=True, slots=True)
class Allowance:
    """The parts of a bound. ``scale``, ``honest`` (factor times the honest error) and ``rounding`` are float64 tensors
    that broadcast to the output; the last two, ``cap`` and ``override`` are relative to ``scale``, ``step`` is
    absolute. ``common`` is what of ``rounding`` only all elements of a row together may use, 0 where nothing is."""

    scale: torch.Tensor
    honest: torch.Tensor
    rounding: torch.Tensor
    cap: float
    step: float
    reason: str
    override: float | None = None
    common: float = 0.0

    def bound(self) -> torch.Tensor:
        """Absolute bound, float64, broadcastable to the output."""
        if self.override is not None:
            return self.override * self.scale + self.step
        return torch.clamp(torch.maximum(self.honest, self.rounding), max=self.cap) * self.scale + self.step

    def apart(self) -> torch.Tensor:
        """Absolute bound of what an element is off beside its row's common error, as ``bound``."""
        own = torch.maximum(self.honest, self.rounding - self.common)
        return torch.clamp(own, max=self.cap) * self.scale + self.step

    def rows(self, low: int, high: int) -> Allowance:
        """The allowance of output rows ``low`` to ``high`` alone."""
        scale, honest, rounding = (_cut(part, low, high) for part in (self.scale, self.honest, self.rounding))
        return replace(self, scale=scale, honest=honest, rounding=rounding)

    def at(self, output: str, index: tuple[int, ...], error: float) -> Bound:
        """What was allowed at one element of ``output`` where the candidate is off by ``error``."""
        scale, honest, rounding = (_at(part, index) for part in (self.scale, self.honest, self.rounding))
        relative, binding = self._binding(honest, rounding)
        return Bound(
            output=output, index=index, error=error, absolute=relative * scale + self.step, relative=relative,
            scale=scale, honest=honest, rounding=rounding, cap=self.cap, binding=binding, reason=self.reason,
        )

    def _binding(self, honest: float, rounding: float) -> tuple[float, str]:
        if self.override is not None:
            return self.override, "override"
        largest = max(honest, rounding)
        if largest > self.cap:
            return self.cap, "cap"
        return largest, "honest" if honest >= rounding else "rounding"


def allowance_of(
    reference: torch.Tensor,
    honest: torch.Tensor,
    scale: torch.Tensor,
    conditioning: torch.Tensor | float,
    tolerance: Tolerance,
    length: int,
    relative: float | None = None,
    row_factor: bool = False,
) -> Allowance:
    """The allowance of one output: float64 ``reference``, what an ``honest`` implementation computed, ``scale`` and
    ``conditioning`` broadcastable to them, reduction ``length``, a goal's own ``relative``
    tolerance, and whether each row has one factor of its own (``row_factor``)."""
    if tolerance.exact or not honest.dtype.is_floating_point:
        nothing = torch.zeros((), dtype=torch.float64)
        return Allowance(scale=nothing, honest=nothing, rounding=nothing, cap=0.0, step=0.0, reason=tolerance.reason)
    step = STEP[honest.dtype]
    scale = torch.where(torch.isfinite(scale), scale, 0.0)
    unit = torch.finfo(honest.dtype).eps / 2
    error = (honest.double() - reference).abs() - step
    share = torch.where(torch.isfinite(error) & (scale > 0), error.clamp_min(0.0) / scale.clamp_min(1e-300), 0.0)
    rounding = tolerance.ulps * unit + (2.0 * math.sqrt(length) + 4.0 * conditioning) * U32
    common = (2.0 * math.sqrt(length) - math.log(length)) * U32
    split = row_factor and relative is None and unit == U32 and length >= LONG
    return Allowance(
        common=common if split else 0.0, scale=scale, honest=tolerance.factor * share.amax(-1, keepdim=True),
        rounding=torch.as_tensor(rounding, dtype=torch.float64), cap=tolerance.cap, step=step,
        reason=tolerance.reason, override=relative,
    )


def _cut(part: torch.Tensor, low: int, high: int) -> torch.Tensor:
    return part if part.dim() == 0 or part.shape[0] == 1 else part[low:high]


def _at(part: torch.Tensor, index: tuple[int, ...]) -> float:
    """One element of a tensor that broadcasts to the indexed one."""
    own = index[len(index) - part.dim() :]
    return float(part[tuple(min(place, size - 1) for place, size in zip(own, part.shape, strict=True))])
