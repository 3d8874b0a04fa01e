"""Timed outputs that differ from the trusted side's: whose fault that is, decided by the oracle, never by the other.

The device says where two sides left different outputs from the same contents, in any of a flushed sample's elements: a
kernel that leaves out work only under the clock is found in the first sample in which it does, however few rows it
leaves out and wherever they lie. The judge computes the row of the first such element anew and judges both values: a
candidate outside the bound does other work when it is timed; an opponent outside of it is the opponent's affair.

Without an opponent the candidate is compared with a second copy of itself, which finds only what differs from call to
call; what both copies leave out alike is left to the verified rows (``verify``).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import torch

from harness.backends.triton.launcher.requests import Apart, RoundRequest, RoundResult, Sweep
from harness.domain.errors import InfrastructureError
from harness.domain.verdict import Reason
from harness.domain.vocabulary import Outcome, Stage
from harness.evaluation.buffers import dtype_of
from harness.evaluation.judge.compare import Finding, compare, unravel
from harness.evaluation.judge.oracle import Expected, expect
from harness.evaluation.judge.rows import inner_axes
from harness.evaluation.ports import CandidateFault, Fault
from harness.evaluation.run import Refused
from harness.evaluation.timing.device.closeness import THREADS, absolute_for, relative_of
from harness.evaluation.timing.device.problem import problem_of, stretches_of, untouched
from harness.evaluation.timing.device.shape import Shape
from harness.evaluation.timing.sides import opponent_failed

MOST_DECIDED = 3
"""Differences of one round that the oracle is asked about: those of most elements."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One output of one slot in which two sides differ, and the sample that it is from."""

    shape: Shape
    sweep: Sweep
    found: Apart


def differences(shape: Shape, request: RoundRequest, result: RoundResult) -> list[Difference]:
    """The worst differences of a round.

    Raises:
        InfrastructureError: the launcher names elements that do not exist.
    """
    shapes = {item.name: item.shape for item in request.arrays if item.kind == "output"}
    for one in result.apart:
        if (request.compared is None or not 0 <= one.sweep < len(request.sweeps) or one.output not in shapes
                or one.slot not in request.sweeps[one.sweep].slots
                or not 0 <= one.index < math.prod(shapes[one.output])
                or not 0 < one.count <= math.prod(shapes[one.output])):
            raise InfrastructureError("The launcher found outputs apart that it was not asked to compare. Nothing was "
                                      "concluded; evaluate again.")
    worst = sorted(result.apart, key=lambda one: one.count, reverse=True)[:MOST_DECIDED]
    return [Difference(shape, request.sweeps[one.sweep], one) for one in worst]


def decide(found: Sequence[Difference], table: torch.Tensor, stage: Stage, trusted: str, *, own: bool,
           relative: float | None = None, ensure_time: Callable[[], None] = lambda: None) -> None:
    """Judge what differs, worst first. ``trusted`` is the side compared with; ``own``: it is the candidate's kernel,
    too. ``relative`` is a goal's own tolerance; ``ensure_time`` raises once the deadline has passed.

    Raises:
        Refused: the candidate's value is outside the bound.
        InfrastructureError: only the other side's is.
        InvalidReference: the reference itself fails.
    """
    others = None
    worst = sorted(found, key=lambda one: one.found.count, reverse=True)
    with ThreadPoolExecutor(max(1, min(THREADS, len(os.sched_getaffinity(0))))) as pool:
        for first in range(0, len(worst), THREADS):
            ensure_time()
            few = worst[first : first + THREADS]
            for one, (wrong, other, index) in zip(few, pool.map(lambda one: _judged(one, table, relative), few),
                                                  strict=True):
                if wrong is not None or (own and other is not None):
                    raise _refused(one, stage, index, wrong or other)
                others = others or (None if other is None else (one, other))
    if others is not None:
        one, other = others
        text = (f"on {one.shape.label} it left {other.got} where {other.expected} is right, although it was verified "
                "before.")
        raise opponent_failed(trusted, CandidateFault(Fault(Outcome.REWARD_HACK, "timed_output_wrong", text)))


def _judged(one: Difference, table: torch.Tensor, relative: float | None
            ) -> tuple[Finding | None, Finding | None, tuple[int, ...]]:
    """What is wrong with the judged and with the trusted value, and the place of the element in the output. Where
    nothing is, the shape learns what the oracle accepts."""
    shape, sweep, found = one.shape, one.sweep, one.found
    argument = next(argument for argument in shape.spec.outputs if argument.name == found.output)
    index = unravel(found.index, torch.Size(shape.point.dims[dim] for dim in argument.dims))
    rows = range(index[0], index[0] + 1) if shape.rows else range(shape.point.dims[argument.dims[0]])
    times = inner_axes(shape.spec, shape.point.dims)[argument.dims[1]] if shape.inner else 1
    block = range(index[1] // times, index[1] // times + 1) if shape.inner else None
    stretches = stretches_of(shape, sweep.starts[sweep.slots.index(found.slot)])
    dims, inputs = problem_of(shape, rows, stretches, table, block)
    answer = expect(shape.spec, dims, inputs, shape.attributes, shape.dtype, relative)[found.output]
    place = (index[0] - rows.start, *index[1:]) if block is None else (0, index[1] % times, *index[2:])
    alone = (1,) * len(argument.dims)
    right = Expected(answer.values[place].reshape(alone), answer.bound.expand_as(answer.values)[place].reshape(alone),
                     None)
    wrong, other = (_wrong(one, value, right) for value in (found.judged, found.trusted))
    if wrong is None and other is None:
        shape.widen(absolute_for(right.values, right.bound, relative_of(shape)))
    return wrong, other, index


def _wrong(one: Difference, value: float, right: Expected) -> Finding | None:
    """What is wrong with ``value`` where one element alone is ``right``."""
    argument = next(argument for argument in one.shape.spec.outputs if argument.name == one.found.output)
    got = torch.full(right.values.shape, value, dtype=dtype_of(argument.dtype or one.shape.dtype))
    return compare(argument.name, argument.dims, got, untouched(got, one.sweep.poison), right).finding


def _refused(one: Difference, stage: Stage, index: tuple[int, ...], wrong: Finding | None) -> Refused:
    assert wrong is not None
    label, found = one.shape.label, one.found
    text = (f"A timed call on {label} left {found.count} element(s) of '{found.output}' that differ from another "
            f"kernel's on the same contents, first at {list(index)}: got {_worded(wrong.got)}, expected "
            f"{_worded(wrong.expected)}. The kernel passed the correctness stage: it does not do the same work when it "
            "is timed.")
    return Refused(Outcome.REWARD_HACK, Reason("timed_output_wrong", stage, text, case=label, index=index,
                                               got=wrong.got, expected=wrong.expected, bound=wrong.bound))


def _worded(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.7g}"

