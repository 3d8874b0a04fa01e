"""Judge what one call left behind: guard bands first, then every output."""

from __future__ import annotations

from dataclasses import dataclass

from harness.domain.verdict import Reason
from harness.domain.vocabulary import Outcome, Stage
from harness.evaluation.judge.compare import compare
from harness.evaluation.judge.lending import Collected, Lending
from harness.evaluation.judge.oracle import Expected


@dataclass(frozen=True, slots=True)
class Checked:
    """Outcome of one call: ``faults`` is empty when everything holds; ``scratch_bytes`` is the worker's claim."""

    worst_ratio: float | None
    error: float | None
    faults: tuple[tuple[Outcome, Reason], ...]
    collected: Collected
    scratch_bytes: int | None = None

    @property
    def reasons(self) -> list[Reason]:
        """The reasons alone."""
        return [reason for _, reason in self.faults]


def check(lending: Lending, answers: dict[str, Expected], stage: Stage, case: str | None = None) -> Checked:
    """Judge the outputs of ``lending`` after a call; the worker must be frozen."""
    faults = lending.broken_guards(stage, case)
    collected = lending.collect()
    ratios, errors = [], []
    for argument in lending.spec.outputs:
        got = collected.values[argument.name]
        result = compare(argument.name, argument.dims, got, collected.untouched[argument.name], answers[argument.name])
        if result.worst_ratio is not None:
            ratios.append(result.worst_ratio)
        if result.error is not None:
            errors.append(result.error)
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
    return Checked(max(ratios, default=None), max(errors, default=None), tuple(faults), collected)
