"""Single calls of the probes, described before any of them is made.

A device is held only while kernels run, so everything that a stage will call is known beforehand: its plans, binaries
and answers are made in one batch (``Session.prepare``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch

from harness.domain.vocabulary import Backend
from harness.evaluation.judge.inputs import cases_for, dtype_for
from harness.evaluation.judge.lending import Collected, sizes_shown
from harness.evaluation.judge.seeds import generator
from harness.evaluation.judge.session import Problem, Session
from harness.evaluation.run import Refused, Run
from harness.operators.base import Case, Dims, OperatorSpec
from harness.operators.implementation import Tensors

Check = Callable[[Collected], None]


@dataclass(frozen=True, slots=True)
class Trial:
    """``calls`` calls of ``problem``. ``judged``: every result is held against the oracle. ``check`` looks at what a
    call left and raises ``Refused``."""

    problem: Problem
    check: Check | None = None
    judged: bool = True
    calls: int = 1


def conduct(session: Session, trial: Trial) -> None:
    """Make the calls of one trial. Raises ``Refused`` or ``CandidateFault``."""
    for _ in range(trial.calls):
        if trial.judged:
            result = session.judge(trial.problem)
            if result.faults:
                raise Refused(result.faults[0][0], *result.reasons)
            collected = result.collected
        else:
            collected = session.outputs(trial.problem)
        if trial.check is not None:
            trial.check(collected)


def problems_of(trials: Iterable[Trial]) -> Sequence[Problem]:
    """Every problem once, in order."""
    return list({id(trial.problem): trial.problem for trial in trials}.values())


class Kept:
    """Remembers the outputs of one trial for the checks of later ones."""

    def __init__(self) -> None:
        self.values: Tensors = {}

    def __call__(self, collected: Collected) -> None:
        """As a ``check``: keep what was left."""
        self.values = collected.values


def smoke_case(run: Run) -> Case:
    """The case whose sizes and attributes the probes take."""
    return next(case for case in cases_for(run.spec, run.place) if case.smoke)


def usual_dims(run: Run) -> Dims:
    """Sizes of most probes."""
    return smoke_case(run).dims


def usual_attributes(run: Run) -> dict[str, float]:
    """Attributes of most probes."""
    return dict(smoke_case(run).attributes)


def usual_dtype(run: Run) -> str:
    """The dtype of all probes."""
    return dtype_for(smoke_case(run), run.workload, Backend(run.request.backend))


def dtypes_of(run: Run) -> tuple[str, ...]:
    """Every dtype of the operator's cases for this candidate's backend, once: a Triton kernel answers for the same ones
    on a device, where the listed cases have the workload's alone, as in the interpreter."""
    backend = Backend(run.request.backend)
    cases = cases_for(run.spec, run.place)
    if backend is Backend.TRITON:
        cases = (*cases, *run.spec.interpret_cases)
    return tuple(dict.fromkeys(dtype_for(case, run.workload, backend) for case in cases))


def draw_for(run: Run, *labels: object) -> torch.Generator:
    """A generator for one purpose, from the secret seed."""
    if run.seed is None:
        raise RuntimeError("probes need the seed that smoke draws")
    return generator(run.seed, *labels)


def dims_of(spec: OperatorSpec, inputs: Tensors, usual: Dims, attributes: Mapping[str, float]) -> dict[str, int]:
    """Sizes of a problem from its inputs and attributes; dimensions that neither shows are the ``usual`` ones."""
    return {**usual, **sizes_shown(spec, inputs, attributes)}
