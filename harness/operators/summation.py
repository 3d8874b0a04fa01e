"""What a float32 sum may lose whatever its order."""

from __future__ import annotations

import torch

U32 = 2.0**-24
FAINT = 2.0
"""Terms below this many roundings of the total may be rounded in the same direction again and again."""


def serial_loss(terms: torch.Tensor, total: torch.Tensor | None = None) -> torch.Tensor:
    """Roundings of the total that a serial float32 sum can lose systematically, [..., 1].

    ``terms`` [..., n] are non-negative float64. Where they are not all of the sum, ``total`` [..., 1] is that of all;
    the ones left out count 0, as those that are not ``FAINT`` do.
    Beside a partial sum S an addend t is rounded by at most min(t, u S). For addends well above u S these errors have
    random signs and the sqrt(n) term covers them; smaller ones may vanish one after the other, so they are added up.
    Rows with NaN or infinity count 0.
    """
    total = terms.sum(-1, keepdim=True) if total is None else total
    rounding = U32 * total
    lost = torch.where(terms < FAINT * rounding, torch.minimum(terms, rounding), 0.0).sum(-1, keepdim=True)
    return (lost / rounding.clamp_min(1e-300)).nan_to_num(0.0, 0.0)
