"""Problems whose answer leaves no room, and relations between the answers to two problems."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch

from harness.domain.verdict import Reason
from harness.domain.vocabulary import Outcome
from harness.evaluation.buffers import dtype_name, dtype_of
from harness.evaluation.judge.allowance import U32
from harness.evaluation.judge.lending import Collected
from harness.evaluation.judge.session import Problem, Session
from harness.evaluation.judge.trials import (
    Kept,
    Trial,
    dims_of,
    draw_for,
    usual_attributes,
    usual_dims,
    usual_dtype,
)
from harness.evaluation.run import Refused, Run
from harness.operators.implementation import ExactProbe, Relation, load_implementation


def exact_problems(run: Run, session: Session) -> Iterator[Trial]:
    """The operator's exact probes."""
    dims, dtype = usual_dims(run), usual_dtype(run)
    for probe in load_implementation(run.spec).exact_probes(dims, dtype_of(dtype), draw_for(run, "exact")):
        name = f"probe: {probe.name}"
        problem = Problem(name, dims_of(run.spec, probe.inputs, dims), probe.inputs, probe.attributes, dtype)
        yield Trial(problem, partial(_exact, run, name, probe), judged=False)


def relations(run: Run, session: Session) -> Iterator[Trial]:
    """The operator's metamorphic relations, around one original and those that bring their own."""
    base = session.problem("probe: relations", usual_dims(run), "normal", usual_attributes(run), usual_dtype(run))
    kept = Kept()
    yield Trial(base, kept)
    for relation in load_implementation(run.spec).relations(base.inputs, base.attributes, draw_for(run, "relations")):
        name, original, left = f"probe: {relation.name}", base, kept
        if relation.original is not None:
            sizes = dims_of(run.spec, relation.original, base.dims)
            original = Problem(f"{name}, original", sizes, relation.original, base.attributes, base.dtype)
            left = Kept()
            yield Trial(original, left)
        sizes = dims_of(run.spec, relation.inputs, base.dims)
        problem = Problem(name, sizes, relation.inputs, relation.attributes, base.dtype)
        yield Trial(problem, partial(_related, run, session, original, left, problem, relation), judged=False)


def _exact(run: Run, name: str, probe: ExactProbe, collected: Collected) -> None:
    for output, right in probe.outputs.items():
        roundings = probe.roundings if right.dtype is torch.float32 else 0.0
        _same(run, name, output, collected.values[output], right, "differs from the exact answer", "exact_wrong",
              roundings)


def _related(
    run: Run, session: Session, original: Problem, kept: Kept, problem: Problem, relation: Relation,
    collected: Collected,
) -> None:
    wanted = relation.outputs(kept.values)
    for output, value in collected.values.items():
        if relation.exact:
            _same(run, problem.name, output, value, wanted[output], "breaks this relation", "relation_broken")
            continue
        bounds, allowed = session.answer(problem)[output], session.answer(original)[output]
        own = allowed.bound.expand_as(allowed.values)
        slack = bounds.bound + relation.outputs({output: own})[output]
        miss = ~((value.double() - wanted[output].double()).abs() <= slack)
        if bool(miss.any()):
            text = (
                f"The kernel breaks a relation that must hold: {relation.name}. {int(miss.sum())} of {miss.numel()} "
                f"elements of '{output}' differ by more than both bounds together."
            )
            raise Refused(Outcome.INCORRECT_NUMERIC, Reason("relation_broken", run.stage, text, case=problem.name))


def _same(
    run: Run, case: str, output: str, got: torch.Tensor, right: torch.Tensor, what: str, code: str,
    roundings: float = 0.0,
) -> None:
    """Refuse unless ``got`` equals ``right`` but for that many float32 roundings (zeros of either sign are equal, NaN
    equals NaN)."""
    off = (got.double() - right.double()).abs()
    near = off <= roundings * U32 * right.double().abs()
    wrong = ~near & (got != right) & ~(torch.isnan(got) & torch.isnan(right))
    if not bool(wrong.any()):
        return
    flat = int(wrong.flatten().int().argmax())
    value, wanted = float(got.flatten()[flat]), float(right.flatten()[flat])
    exact = "is exact in any order of evaluation" if roundings == 0 else f"is right to {roundings:g} roundings"
    text = (
        f"Output '{output}' {what} in {int(wrong.sum())} of {wrong.numel()} elements ({dtype_name(got.dtype)}): first "
        f"got {value!r} where {wanted!r} {exact}. Case '{case}'."
    )
    index = tuple(int(place) for place in torch.nonzero(wrong)[0])
    raise Refused(
        Outcome.INCORRECT_NUMERIC, Reason(code, run.stage, text, case=case, index=index, got=_plain(value),
                                          expected=_plain(wanted), bound=roundings * U32 * abs(wanted)))


def _plain(value: float) -> float | str:
    """JSON has no NaN and no infinity."""
    return value if abs(value) < float("inf") else str(value)
