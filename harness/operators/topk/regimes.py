"""Value regimes of topk about ties, special values and where the largest ones lie; float32 [rows, cols]."""

from __future__ import annotations

from collections.abc import Callable

import torch

from harness.operators.values import normal, places, signs

Regime = Callable[[int, int, int, torch.Generator], torch.Tensor]
NEAR = 4
"""A cluster has this many times as many columns as there are values wanted."""


def _share(rows: int, cols: int, share: float, generator: torch.Generator) -> torch.Tensor:
    return torch.rand(rows, cols, generator=generator) < share


def _few(rows: int, cols: int, k: int, generator: torch.Generator) -> torch.Tensor:
    """Four different values: ties everywhere."""
    return torch.randint(-1, 3, (rows, cols), generator=generator).float()


def _last_tie(rows: int, cols: int, k: int, generator: torch.Generator) -> torch.Tensor:
    """Half of what is wanted stands out; the rest ties with all others."""
    order = torch.rand(rows, cols, generator=generator).argsort(-1).argsort(-1)
    return torch.where(order < k // 2, 1.0, 0.0)


def _both_zeros(rows: int, cols: int, k: int, generator: torch.Generator) -> torch.Tensor:
    """Zeros of both signs, nothing above them and a few values below."""
    zeros = signs((rows, cols), generator) * 0.0
    return torch.where(_share(rows, cols, 0.1, generator), -normal((rows, cols), generator).abs(), zeros)


def _nans(rows: int, cols: int, k: int, generator: torch.Generator) -> torch.Tensor:
    """NaN of both signs among numbers, in some rows more of them than are wanted, and one +inf."""
    values = normal((rows, cols), generator)
    values[torch.arange(rows), places(rows, cols, generator)] = torch.inf
    shares = torch.tensor([0.01, 0.3, 1.0]).repeat(rows)[:rows, None]
    chosen = torch.rand(rows, cols, generator=generator) < shares
    return torch.where(chosen, torch.copysign(torch.tensor(torch.nan), signs((rows, cols), generator)), values)


def _infinities(rows: int, cols: int, k: int, generator: torch.Generator) -> torch.Tensor:
    """Infinities of both signs among numbers; few of the positive ones."""
    values = normal((rows, cols), generator)
    values[_share(rows, cols, 0.3, generator)] = -torch.inf
    values[_share(rows, cols, 0.02, generator)] = torch.inf
    return values


def _hardly_any(rows: int, cols: int, k: int, generator: torch.Generator) -> torch.Tensor:
    """Half as many numbers as are wanted, all others -inf: those must fill up in order."""
    order = torch.rand(rows, cols, generator=generator).argsort(-1).argsort(-1)
    return torch.where(order < k // 2, normal((rows, cols), generator), -torch.inf)


def _cluster(rows: int, cols: int, k: int, generator: torch.Generator) -> torch.Tensor:
    """All of the largest values side by side."""
    first = torch.randint(max(1, cols - NEAR * k), (rows, 1), generator=generator)
    columns = torch.arange(cols)
    return normal((rows, cols), generator) + 8.0 * ((columns >= first) & (columns < first + NEAR * k))


def _falling(rows: int, cols: int, k: int, generator: torch.Generator) -> torch.Tensor:
    return (normal((rows, cols), generator) * 4.0).sort(-1, descending=True).values


OWN: dict[str, Regime] = {
    "few": _few,
    "last_tie": _last_tie,
    "both_zeros": _both_zeros,
    "nans": _nans,
    "infinities": _infinities,
    "hardly_any": _hardly_any,
    "cluster": _cluster,
    "falling": _falling,
}
"""Regimes by name; each takes rows, columns, k and the generator."""
