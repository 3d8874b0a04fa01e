"""Compare one output with its answer: never written, NaN and infinity classes, then the bound. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from harness.domain.verdict import Bound
from harness.domain.vocabulary import Outcome
from harness.evaluation.judge.oracle import Expected, largest_error
from harness.evaluation.judge.words import Lengths, pattern_of


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
    """``worst_ratio`` is the largest error as a share of its bound, ``error`` the largest absolute one, ``bound`` what
    was allowed where that share is largest."""

    worst_ratio: float | None
    error: float | None
    finding: Finding | None
    bound: Bound | None = None


def compare(
    name: str,
    axes: tuple[str, ...],
    got: torch.Tensor,
    untouched: torch.Tensor,
    answer: Expected,
    lengths: Lengths | None = None,
) -> Compared:
    """Judge output ``name`` (axes as declared) that a worker left as ``got``: never written, then NaN and infinity
    classes, then the bound. ``lengths`` help to say where it is wrong (``pattern_of``)."""
    finding = _unwritten(name, axes, got, untouched, answer, lengths) or _classes(name, axes, got, answer, lengths)
    if finding is not None:
        return Compared(None, None, finding)
    finite = torch.isfinite(answer.values) & torch.isfinite(got)
    error = torch.where(finite, (got.double() - answer.values).abs(), 0.0)
    ratio = torch.where(error > 0.0, error / answer.bound, 0.0)  # endless where nothing is allowed
    worst = float(ratio.max())
    largest = largest_error(got, answer.values)
    index = unravel(int(ratio.argmax()), got.shape)
    allowed = None
    if answer.allowance is not None and bool(finite.any()):
        allowed = answer.allowance.at(name, index, float(error[index]))
    if worst <= 1.0:
        return Compared(worst, largest, _apart(name, axes, got, answer, lengths), allowed)
    where = pattern_of(ratio > 1.0, axes, lengths)
    value, right, bound = (float(tensor[index]) for tensor in (got, answer.values, answer.bound.expand_as(ratio)))
    room = f"{bound:.3g} is allowed ({worst:.3g} times the bound)" if bound > 0.0 else "it must be that very value"
    text = (
        f"Output '{name}' is wrong in {where.words}. Worst at {list(index)}: got {value:.7g}, expected {right:.7g}, "
        f"off by {abs(value - right):.3g} where {room}."
    )
    found = Finding(Outcome.INCORRECT_NUMERIC, where.code, text, index, value, right, bound)
    return Compared(worst if bound > 0.0 else None, largest, found, allowed)


def _apart(
    name: str, axes: tuple[str, ...], got: torch.Tensor, answer: Expected, lengths: Lengths | None
) -> Finding | None:
    """Within the bound, but only because a long sum may err, which errs for all elements of a row alike."""
    allowance, right = answer.allowance, answer.values
    if allowance is None or not allowance.common:
        return None
    usable = torch.isfinite(right) & torch.isfinite(got) & (right != 0.0)
    own = allowance.apart() / right.abs()
    off = (got.double() - right) / right
    least = torch.where(usable, off - own, -torch.inf).amax(-1, keepdim=True)
    most = torch.where(usable, off + own, torch.inf).amin(-1, keepdim=True)
    torn = least > most
    if not bool(torn.any()):
        return None
    rest = torch.where(usable & torn, (off - (least + most) / 2) * right, 0.0).abs()
    ratio = rest / allowance.apart()
    worst = float(ratio.max())
    where = pattern_of(ratio > 1.0, axes, lengths)
    index = unravel(int(ratio.argmax()), got.shape)
    value, expected, bound = (float(tensor[index]) for tensor in (got, right, allowance.apart().expand_as(right)))
    text = (
        f"Output '{name}' is wrong in {where.words}. Worst at {list(index)}: got {value:.7g}, expected {expected:.7g}, "
        f"off by {float(rest[index]):.3g} beside any error that its whole row could have in common, where {bound:.3g} "
        f"is allowed ({worst:.3g} times the bound). A long sum may err, but that moves all elements of a row alike."
    )
    return Finding(Outcome.INCORRECT_NUMERIC, where.code, text, index, value, expected, bound)


def _unwritten(
    name: str,
    axes: tuple[str, ...],
    got: torch.Tensor,
    untouched: torch.Tensor,
    answer: Expected,
    lengths: Lengths | None,
) -> Finding | None:
    missing = untouched & (got.double() - answer.values).abs().nan_to_num(math.inf).gt(answer.bound)
    if not bool(missing.any()):
        return None
    where = pattern_of(missing, axes, lengths)
    index = unravel(int(missing.flatten().int().argmax()), got.shape)
    text = (
        f"Output '{name}' was never written in {where.words}. Its memory still holds what the evaluator put there; "
        "check grid, loop bounds and masks."
    )
    return Finding(
        Outcome.INCORRECT_NUMERIC, "not_written", text, index, "not written", number(answer.values[index]), None
    )


def _classes(
    name: str, axes: tuple[str, ...], got: torch.Tensor, answer: Expected, lengths: Lengths | None
) -> Finding | None:
    right = answer.values.to(got.dtype)
    nan = torch.isnan(got) != torch.isnan(right)
    infinite = (torch.isinf(got) | torch.isinf(right)) & (got != right) & ~nan & ~_at_the_edge(got, answer)
    wrong = nan | infinite
    if not bool(wrong.any()):
        return None
    where = pattern_of(wrong, axes, lengths)
    index = unravel(int(wrong.flatten().int().argmax()), got.shape)
    value, expected = number(got[index]), number(answer.values[index])
    text = (
        f"Output '{name}' has NaN or infinity where it should not, or lacks it where it should be, in {where.words}. "
        f"First at {list(index)}: got {value}, expected {expected}."
    )
    code = "nan_wrong" if bool(nan.any()) else "inf_wrong"
    return Finding(Outcome.INCORRECT_NAN, code, text, index, value, expected, None)


def _at_the_edge(got: torch.Tensor, answer: Expected) -> torch.Tensor:
    """Where a finite answer lies so close to the end of the dtype's range that its bound reaches over it: both the
    largest finite values and infinity of that sign are right then."""
    if not got.is_floating_point():
        return torch.zeros(got.shape, dtype=torch.bool)
    largest = torch.finfo(got.dtype).max
    reaches = torch.isfinite(answer.values) & (answer.values.abs() + answer.bound > largest)
    near = torch.isfinite(got) | (torch.sign(got.double()) == torch.sign(answer.values))
    return reaches & near


def unravel(flat: int, shape: torch.Size) -> tuple[int, ...]:
    """The position of a flat index."""
    index = []
    for size in reversed(shape):
        index.append(flat % size)
        flat //= size
    return tuple(reversed(index))


def number(value: torch.Tensor) -> float | str:
    """JSON has no NaN and no infinity: those become words."""
    number = float(value)
    return number if math.isfinite(number) else str(number)
