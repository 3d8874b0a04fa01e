"""Equal inputs must give equal bits (races do not), and new contents for a shape already seen a new answer."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch

from harness.domain.verdict import Reason
from harness.domain.vocabulary import Outcome
from harness.evaluation.judge.amounts import amounts_of
from harness.evaluation.judge.compare import number, unravel
from harness.evaluation.judge.lending import Collected
from harness.evaluation.judge.session import Session
from harness.evaluation.judge.trials import Kept, Trial, usual_attributes, usual_dims, usual_dtype
from harness.evaluation.judge.words import pattern_of
from harness.evaluation.run import Refused, Run


def repeats(run: Run, session: Session) -> Iterator[Trial]:
    """One small problem many times, then one with enough rows to keep every core or multiprocessor busy."""
    amounts = amounts_of(run)
    rows = run.spec.outputs[0].dims[0]
    yield from _repeated(run, session, "probe: repeat", dict(usual_dims(run)), amounts.repeats)
    if amounts.wide_rows:
        dims = {**usual_dims(run), rows: amounts.wide_rows}
        yield from _repeated(run, session, f"probe: repeat with {amounts.wide_rows} {rows}", dims, amounts.wide_repeats)


def fresh_contents(run: Run, session: Session) -> Iterator[Trial]:
    """New contents for one shape, again and again."""
    for turn in range(amounts_of(run).fresh):
        name = f"probe: fresh contents {turn + 1}"
        yield Trial(session.problem(name, usual_dims(run), "normal", usual_attributes(run), usual_dtype(run)))


def _repeated(run: Run, session: Session, name: str, dims: dict[str, int], times: int) -> Iterator[Trial]:
    problem = session.problem(name, dims, "normal", usual_attributes(run), usual_dtype(run))
    first = Kept()
    yield Trial(problem, first)
    if run.spec.deterministic and times > 1:
        yield Trial(problem, partial(same_bits, run, name, first), judged=False, calls=times - 1)


def same_bits(run: Run, case: str, first: Kept, collected: Collected) -> None:
    """Raises ``Refused`` unless a call left the same bits as the ``first``."""
    for argument in run.spec.outputs:
        values, before = collected.values[argument.name], first.values[argument.name]
        moved = (_bits(values) != _bits(before)).any(-1).view(values.shape)
        if bool(moved.any()):
            index = unravel(int(moved.flatten().int().argmax()), values.shape)
            text = (
                f"Equal inputs gave different bits: output '{argument.name}' changed between two calls in "
                f"{pattern_of(moved, argument.dims).words}. Remove the race or the source of randomness; sum in a "
                "fixed order."
            )
            reason = Reason("nondeterministic", run.stage, text, case=case, index=index, got=number(values[index]),
                            expected=number(before[index]), bound=0.0)
            raise Refused(Outcome.INCORRECT_NONDETERMINISTIC, reason)


def _bits(values: torch.Tensor) -> torch.Tensor:
    """The bytes of every element, [elements, bytes]."""
    return values.contiguous().view(-1, 1).view(torch.uint8)
