"""Does every launch do work? On a plan, one launch at a time is left out and the answer must become wrong.

What is fair: outputs and scratch are poisoned before every call, so a plan of one launch that can be left out has its
answer from elsewhere, which is ``reward_hack``. In a plan of several, an honest kernel may hold a launch that these
contents do not need (a pass that only mends empty sequences, or clears scratch that the next launch overwrites), and
leaving out one of two equal launches changes nothing either. Such a launch costs its candidate time and gains nothing:
it is a note for the reviewer (``look``), not a refusal. A measured shape is used, because passes that small problems
do not need are common. A launch whose absence makes another one fail on the device has shown its effect.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from harness.domain.verdict import Reason
from harness.domain.vocabulary import Outcome
from harness.evaluation.judge.lending import Collected, Lending
from harness.evaluation.judge.rows import check_rows
from harness.evaluation.judge.seeds import generator
from harness.evaluation.ports import CandidateFault, PlanReplayer
from harness.evaluation.run import Refused, Run
from harness.operators.base import Dims

CODE = "launch_without_effect"
MOST = 8
"""Launches tried of one plan; those of a longer one are drawn from the secret seed."""


@dataclass(frozen=True, slots=True)
class Nulled:
    """What a call left without launch ``number``; ``None`` where it did not end well."""

    number: int
    collected: Collected | None


def call_nulled(run: Run, worker: PlanReplayer, lending: Lending) -> list[Nulled]:
    """Run the call on ``lending`` once per launch, without it. The outputs hold fresh poison afterwards."""
    names = worker.launches(lending.lent, lending.attributes)
    return [Nulled(number, _left_without(run, worker, lending, number)) for number in _tried(run, len(names))]


def judge_nulled(run: Run, names: tuple[str, ...], nulled: list[Nulled], lending: Lending, dims: Dims,
                 case: str) -> None:
    """Which launches (``names`` are all of the plan) the answer did not need. Notes are added to ``run.notes``.

    Raises:
        Refused: the only launch of the plan is not needed.
    """
    idle = [one.number for one in nulled if one.collected is not None and _right(run, one, lending, dims, case)]
    if not idle:
        return
    if len(names) == 1:
        text = (
            f"The outputs of case '{case}' were right although the only launch, of '{names[0]}', was left out: they "
            "come from somewhere else. Compute them in every call."
        )
        raise Refused(Outcome.REWARD_HACK, Reason(CODE, run.stage, text, case=case))
    listed = ", ".join(f"{number + 1} ('{names[number]}')" for number in idle)
    text = (
        f"At {case} the outputs are right without launch {listed} of {len(names)}, one left out at a time. A reviewer "
        "should see what it is for; leave it out if nothing needs it."
    )
    run.notes.append(Reason(CODE, run.stage, text, case=case))


def _tried(run: Run, launches: int) -> list[int]:
    if launches <= MOST:
        return list(range(launches))
    assert run.seed is not None
    return sorted(torch.randperm(launches, generator=generator(run.seed, "nulling"))[:MOST].tolist())


def _left_without(run: Run, worker: PlanReplayer, lending: Lending, number: int) -> Collected | None:
    run.ensure_time()
    try:
        worker.call_without(lending.lent, lending.attributes, number)
        return None if lending.broken_guards(run.stage) else lending.collect()
    except CandidateFault:
        return None
    finally:
        lending.poison()


def _right(run: Run, one: Nulled, lending: Lending, dims: Dims, case: str) -> bool:
    assert run.seed is not None and one.collected is not None
    if any(bool(untouched.any()) for untouched in one.collected.untouched.values()):
        return False  # whatever the oracle says of the rows it looks at, something was not computed
    override = run.request.goal.limits.tolerance
    checked = check_rows(
        run.spec, dims, lending.inputs, lending.attributes, lending.dtype, one.collected,
        generator(run.seed, "nulled rows", case, one.number), run.stage, case, override.relative if override else None,
    )
    return not checked.faults
