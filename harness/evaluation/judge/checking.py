"""Judge what one call left behind: guard bands first, then every output."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from harness.domain.verdict import Bound, Reason
from harness.domain.vocabulary import Outcome, Stage
from harness.evaluation.judge.compare import compare
from harness.evaluation.judge.lending import Collected, Lending
from harness.evaluation.judge.oracle import Expected
from harness.evaluation.judge.words import Lengths
from harness.operators.base import Dims, OperatorSpec


@dataclass(frozen=True, slots=True)
class Checked:
    """Outcome of one call: ``faults`` is empty when everything holds; ``scratch_bytes`` is the worker's claim,
    ``bound`` what was allowed where an error came closest to it."""

    worst_ratio: float | None
    error: float | None
    faults: tuple[tuple[Outcome, Reason], ...]
    collected: Collected
    scratch_bytes: int | None = None
    bound: Bound | None = None

    @property
    def reasons(self) -> list[Reason]:
        """The reasons alone."""
        return [reason for _, reason in self.faults]


def check(lending: Lending, answers: dict[str, Expected], stage: Stage, case: str | None = None) -> Checked:
    """Judge the outputs of ``lending`` after a call; the worker must be frozen."""
    return check_collected(lending, lending.collect(), lending.broken_guards(stage, case), answers, stage, case)


def check_collected(lending: Lending, collected: Collected, broken: list[tuple[Outcome, Reason]],
                    answers: dict[str, Expected], stage: Stage, case: str | None = None) -> Checked:
    """Judge outputs that were copied from ``lending`` before, with the guards found broken then; its inputs must still
    be those of that call."""
    faults = list(broken)
    lengths = lengths_of(lending.spec, lending.inputs)
    compared = []
    for argument in lending.spec.outputs:
        got = collected.values[argument.name]
        untouched = collected.untouched[argument.name]
        result = compare(argument.name, argument.dims, got, untouched, answers[argument.name], lengths)
        compared.append(result)
        found = result.finding
        if found is not None:
            text = f"Case '{case}': {found.text}" if case else found.text
            reason = Reason(
                found.code,
                stage,
                text,
                case=case,
                index=found.index,
                got=found.got,
                expected=found.expected,
                bound=found.bound,
            )
            faults.append((found.outcome, reason))
    worst = max(compared, key=lambda result: -1.0 if result.worst_ratio is None else result.worst_ratio)
    largest = max((result.error for result in compared if result.error is not None), default=None)
    return Checked(worst.worst_ratio, largest, tuple(faults), collected, bound=worst.bound)


def lengths_of(spec: OperatorSpec, inputs: dict[str, torch.Tensor]) -> Lengths | None:
    """How much of each index of a dimension is in use, where an argument of the operator says so."""
    for argument in spec.inputs:
        if argument.counts is not None:
            return Lengths(argument.dims[0], argument.counts, inputs[argument.name])
    return None


def dims_in_use(spec: OperatorSpec, dims: Dims, inputs: dict[str, torch.Tensor]) -> dict[str, int]:
    """``dims`` with what ``inputs`` use of a counted dimension on average: a call has to move and compute as much."""
    lengths = lengths_of(spec, inputs)
    if lengths is None:
        return dict(dims)
    return {**dims, lengths.counted: max(1, round(float(lengths.values.double().mean())))}
