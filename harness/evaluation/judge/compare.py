"""Compare one output with its answer: never written, NaN and infinity classes, then the bound. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from harness.domain.vocabulary import Outcome
from harness.evaluation.judge.oracle import Expected, largest_error
from harness.evaluation.judge.words import pattern_of


@dataclass(frozen=True, slots=True)
class Finding:
    """The worst miss of one output."""

    outcome: Outcome
    code: str
    text: str
    index: tuple[int, ...]
    got: float | str
    expected: float | str
    bound: float | None


@dataclass(frozen=True, slots=True)
class Compared:
    """``worst_ratio`` is the largest error as a share of its bound, ``error`` the largest absolute one."""

    worst_ratio: float | None
    error: float | None
    finding: Finding | None


def compare(name: str, axes: tuple[str, ...], got: torch.Tensor, untouched: torch.Tensor, answer: Expected) -> Compared:
    """Judge output ``name`` (axes as declared) that a worker left as ``got``."""
    finding = _unwritten(name, axes, got, untouched, answer) or _classes(name, axes, got, answer)
    if finding is not None:
        return Compared(None, None, finding)
    finite = torch.isfinite(answer.values.to(got.dtype)) & torch.isfinite(got)
    error = torch.where(finite, (got.double() - answer.values).abs(), 0.0)
    ratio = error / answer.bound
    worst = float(ratio.max())
    largest = largest_error(got, answer.values)
    if worst <= 1.0:
        return Compared(worst, largest, None)
    where = pattern_of(ratio > 1.0, axes)
    index = _unravel(int(ratio.argmax()), got.shape)
    value, right, bound = (float(tensor[index]) for tensor in (got, answer.values, answer.bound))
    text = (
        f"Output '{name}' is wrong in {where.words}. Worst at {list(index)}: got {value:.7g}, expected {right:.7g}, "
        f"off by {abs(value - right):.3g} where {bound:.3g} is allowed ({worst:.3g} times the bound)."
    )
    return Compared(worst, largest, Finding(Outcome.INCORRECT_NUMERIC, where.code, text, index, value, right, bound))


def _unwritten(
    name: str, axes: tuple[str, ...], got: torch.Tensor, untouched: torch.Tensor, answer: Expected
) -> Finding | None:
    missing = untouched & (got.double() - answer.values).abs().nan_to_num(math.inf).gt(answer.bound)
    if not bool(missing.any()):
        return None
    where = pattern_of(missing, axes)
    index = _unravel(int(missing.flatten().int().argmax()), got.shape)
    text = (
        f"Output '{name}' was never written in {where.words}. Its memory still holds what the evaluator put there; "
        "check grid, loop bounds and masks."
    )
    return Finding(
        Outcome.INCORRECT_NUMERIC, "not_written", text, index, "not written", _number(answer.values[index]), None
    )


def _classes(name: str, axes: tuple[str, ...], got: torch.Tensor, answer: Expected) -> Finding | None:
    right = answer.values.to(got.dtype)
    nan = torch.isnan(got) != torch.isnan(right)
    infinite = (torch.isinf(got) | torch.isinf(right)) & (got != right) & ~nan
    wrong = nan | infinite
    if not bool(wrong.any()):
        return None
    where = pattern_of(wrong, axes)
    index = _unravel(int(wrong.flatten().int().argmax()), got.shape)
    value, expected = _number(got[index]), _number(answer.values[index])
    text = (
        f"Output '{name}' has NaN or infinity where it should not, or lacks it where it should be, in {where.words}. "
        f"First at {list(index)}: got {value}, expected {expected}."
    )
    code = "nan_wrong" if bool(nan.any()) else "inf_wrong"
    return Finding(Outcome.INCORRECT_NAN, code, text, index, value, expected, None)


def _unravel(flat: int, shape: torch.Size) -> tuple[int, ...]:
    index = []
    for size in reversed(shape):
        index.append(flat % size)
        flat //= size
    return tuple(reversed(index))


def _number(value: torch.Tensor) -> float | str:
    """JSON has no NaN and no infinity: those become words."""
    number = float(value)
    return number if math.isfinite(number) else str(number)
