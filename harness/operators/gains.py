"""Weights of normalisations: one gain per column, drawn to the regime of the rows that they scale."""

from __future__ import annotations

import torch

from harness.operators.values import normal, signs, uniform

SPECIAL = "special_weights"
"""A regime of weights; the rows beside them are normal."""
SPECIAL_VALUES = (torch.nan, torch.inf, -torch.inf)
REPEATS = 4


def alone(regimes: tuple[str, ...]) -> str | None:
    """The regime where it is the only one."""
    return regimes[0] if len(regimes) == 1 else None


def regimes_of_rows(regimes: tuple[str, ...]) -> tuple[str, ...]:
    """What the rows hold: normal values beside special weights."""
    return ("normal",) if alone(regimes) == SPECIAL else regimes


def gains(regimes: tuple[str, ...], cols: int, dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    """Weights [cols] around 1 with both signs possible, float32.

    Where a regime is alone: weights of ``wide`` have both signs, magnitudes from 1e-5 to 1e5 (1e-2 to 1e2 in float16)
    and some zeros of both signs; those of ``special_weights`` hold NaN and infinities."""
    weight = 1.0 + 0.5 * normal((cols,), generator)
    if alone(regimes) == "wide":
        reach = 2.0 if dtype is torch.float16 else 5.0
        weight = signs((cols,), generator) * 10 ** uniform((cols,), generator, -reach, reach)
        weight[torch.rand(cols, generator=generator) < 0.05] *= 0.0
    elif alone(regimes) == SPECIAL:
        with_specials(weight, torch.randperm(cols, generator=generator))
    return weight


def with_specials(values: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
    """Put NaN and both infinities into the first places of ``order``, ``REPEATS`` times each; returns these places."""
    places = order[: REPEATS * len(SPECIAL_VALUES)]
    values[places] = torch.tensor(SPECIAL_VALUES).repeat(REPEATS)[: len(places)]
    return places
