"""Problems whose answer leaves no room, and relations between the answers to two problems."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch

from harness.domain.verdict import Reason
from harness.domain.vocabulary import Outcome
from harness.evaluation.buffers import dtype_name, dtype_of
from harness.evaluation.judge.allowance import U32
from harness.evaluation.judge.compare import number, unravel
from harness.evaluation.judge.lending import Collected
from harness.evaluation.judge.session import Problem, Session
from harness.evaluation.judge.trials import (
    Kept,
    Trial,
    dims_of,
    draw_for,
    dtypes_of,
    usual_attributes,
    usual_dims,
    usual_dtype,
)
from harness.evaluation.judge.words import pattern_of
from harness.evaluation.run import Refused, Run
from harness.operators.implementation import ExactProbe, Relation, load_implementation


def exact_problems(run: Run, session: Session) -> Iterator[Trial]:
    """The operator's exact probes, in every dtype that its cases have: what narrows operands to the workload's dtype
    does nothing wrong there, and shows in a wider one. None where the goal has a tolerance of its own, which they are
    stricter than."""
    if run.request.goal.limits.tolerance is not None:
        return
    dims, usual = usual_dims(run), usual_dtype(run)
    for dtype in (usual, *(name for name in dtypes_of(run) if name != usual)):
        draw = draw_for(run, "exact", dtype)
        for probe in load_implementation(run.spec).exact_probes(dims, dtype_of(dtype), draw):
            name = f"probe: {probe.name}" + (f" ({dtype})" if dtype != usual else "")
            sizes = dims_of(run.spec, probe.inputs, dims, probe.attributes)
            problem = Problem(name, sizes, probe.inputs, probe.attributes, dtype)
            yield Trial(problem, partial(_exact, run, name, probe), judged=False)


def relations(run: Run, session: Session) -> Iterator[Trial]:
    """The operator's metamorphic relations, around one original and those that bring their own."""
    base = session.problem("probe: relations", usual_dims(run), "normal", usual_attributes(run), usual_dtype(run))
    kept = Kept()
    yield Trial(base, kept)
    for relation in load_implementation(run.spec).relations(base.inputs, base.attributes, draw_for(run, "relations")):
        name, original, left = f"probe: {relation.name}", base, kept
        if relation.original is not None:
            sizes = dims_of(run.spec, relation.original, base.dims, base.attributes)
            original = Problem(f"{name}, original", sizes, relation.original, base.attributes, base.dtype)
            left = Kept()
            yield Trial(original, left)
        sizes = dims_of(run.spec, relation.inputs, base.dims, relation.attributes)
        problem = Problem(name, sizes, relation.inputs, relation.attributes, base.dtype)
        yield Trial(problem, partial(_related, run, session, original, left, problem, relation), judged=False)


def _exact(run: Run, name: str, probe: ExactProbe, collected: Collected) -> None:
    for output, right in probe.outputs.items():
        roundings = probe.roundings if right.dtype is torch.float32 else 0.0
        slack = roundings * U32 * right.double().abs()
        room = f"is right to {roundings:g} roundings" if roundings else "is exact in any order of evaluation"
        _hold(run, name, output, collected.values[output], right, slack, "exact_wrong",
              f"differs from the exact answer ({{got}} where {{wanted}} {room})")


def _related(
    run: Run, session: Session, original: Problem, kept: Kept, problem: Problem, relation: Relation,
    collected: Collected,
) -> None:
    """Bits must follow where the relation is exact, unless the goal has a tolerance of its own."""
    wanted = relation.outputs(kept.values)
    for output, value in collected.values.items():
        exact = run.spec.tolerances[problem.dtype].exact or not value.is_floating_point()
        if exact or (relation.exact and run.request.goal.limits.tolerance is None):
            slack, room = torch.zeros((), dtype=torch.float64), "must be the same bits"
        else:
            allowed = {name: one.bound.expand_as(one.values) for name, one in session.answer(original).items()}
            slack = session.answer(problem)[output].bound + relation.outputs(allowed)[output].abs()
            room = "is allowed for by both bounds together"
        _hold(run, problem.name, output, value, wanted[output], slack, "relation_broken",
              f"breaks a relation that must hold, '{relation.name}' ({{got}} where {{wanted}} {room})")


def _hold(
    run: Run, case: str, output: str, got: torch.Tensor, wanted: torch.Tensor, slack: torch.Tensor, code: str, what: str
) -> None:
    """Refuse unless ``got`` is within ``slack`` of ``wanted`` (zeros of either sign are equal, NaN equals NaN)."""
    off = (got.double() - wanted.double()).abs()
    alike = (got == wanted) | (torch.isnan(got) & torch.isnan(wanted))
    wrong = ~(off <= slack) & ~alike
    if not bool(wrong.any()):
        return
    axes = next(argument.dims for argument in run.spec.outputs if argument.name == output)
    excess = torch.where(wrong, (off - slack).nan_to_num(torch.inf), -1.0)
    index = unravel(int(excess.argmax()), got.shape)
    value, right, bound = number(got[index]), number(wanted[index]), float(slack.expand_as(off)[index])
    sentence = what.format(got=f"got {value!r}", wanted=repr(right))
    text = (
        f"Case '{case}': output '{output}' ({dtype_name(got.dtype)}) {sentence}. Worst at {list(index)}; wrong are "
        f"{pattern_of(wrong, axes).words}."
    )
    reason = Reason(code, run.stage, text, case=case, index=index, got=value, expected=right, bound=bound)
    raise Refused(Outcome.INCORRECT_NUMERIC, reason)
