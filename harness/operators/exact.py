"""Building blocks of exact probes: integers whose sums are exact in float32, results that lie beside a rounding tie.

An output in half precision hides errors below one rounding, 2^-9 for bfloat16. It hides nothing where the right result
lies just beside the middle of two representable values: there a much smaller error of a sum rounds it the other way.
"""

from __future__ import annotations

import math

import torch

EXACT = 1 << 24
"""Sums of integers below this are exact in float32, in any order."""
MANTISSA = {torch.float32: 24, torch.bfloat16: 8, torch.float16: 11}
"""Significant bits, the leading one included."""


def roundings(length: int) -> float:
    """What a float32 result may be off by, in roundings of float32: a root, a quotient or an exponential, and the sum
    of a kernel whose terms are no integers any more (divided by the length first, averaged as they come), which is
    2 sqrt(length) as in the judge's bounds. Narrower sums and operands err by thousands."""
    return 16.0 + 2.0 * math.sqrt(length)


def odd_integers(
    shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator, bits: int | None = None
) -> torch.Tensor:
    """Random odd integers of the full width of ``dtype`` (at most 12 bits), float64: any narrower format rounds each
    of them."""
    width = min(12, MANTISSA[dtype]) if bits is None else bits
    low = 1 << (width - 1)
    return (torch.randint(low // 2, low, shape, generator=generator) * 2 + 1).double()


def tie_distance(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """How far positive float64 ``values`` lie from the nearest rounding tie of ``dtype``, relative; normal range."""
    mantissa, _ = torch.frexp(values)
    scaled = mantissa * 2.0 ** MANTISSA[dtype]
    return ((scaled - scaled.floor()) - 0.5).abs() / scaled


def with_square_sum(
    count: int, total: int, largest: int, least: int, spare: int, generator: torch.Generator
) -> torch.Tensor | None:
    """``count`` odd integers from ``least`` to ``largest`` followed by ``spare`` others of at most ``largest``, whose
    squares add up to ``total`` exactly; float64, ``None`` where chance did not allow it."""
    mean = 0.85 * total / count
    usual = min(largest, int((math.sqrt(12 * mean - 3 * least * least) - least) / 2))  # of a uniform draw
    if usual <= least:
        return None
    drawn = (torch.randint(least // 2, (usual + 1) // 2, (count,), generator=generator) * 2 + 1).tolist()
    missing = total - sum(value * value for value in drawn)
    for place in torch.randperm(count, generator=generator).tolist():
        if missing <= largest * largest * (spare // 2):
            break
        missing -= largest * largest - drawn[place] ** 2
        drawn[place] = largest
    for _ in range(spare):
        root = min(largest, math.isqrt(max(0, missing)))
        missing -= root * root
        drawn.append(root)
    return torch.tensor(drawn, dtype=torch.float64) if missing == 0 else None
