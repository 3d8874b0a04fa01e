"""Stage ``probes``: experiments that a kernel which merely looks right does not survive.

Sensitivity (a spike in every part of the input must show), exact problems (no tolerance at all), metamorphic relations,
bitwise repeat, fresh contents for shapes already seen (a remembered answer is then a wrong one), and sizes that no list
names.
"""

from __future__ import annotations

import math

import torch

from harness.domain.verdict import Reason
from harness.domain.vocabulary import Backend, Outcome, Stage
from harness.evaluation.buffers import dtype_name, dtype_of
from harness.evaluation.judge.inputs import cases_for, dtype_for
from harness.evaluation.judge.seeds import generator
from harness.evaluation.judge.session import Problem, Session, end_session, session_of
from harness.evaluation.run import Refused, Run
from harness.operators.base import Case, Dims
from harness.operators.implementation import Relation, Tensors, load_implementation

SPIKED_ROWS = {Backend.NUMBA: 32, Backend.TRITON: 6}
FRESH = {Backend.NUMBA: 4, Backend.TRITON: 2}
REPEATS = {Backend.NUMBA: 4, Backend.TRITON: 2}
SIZES = {Backend.NUMBA: 48, Backend.TRITON: 3}
"""How many sets of sizes are drawn."""
INTERPRETED_SHARE = 16
"""The interpreter is slow: drawn sizes are at most the largest divided by this there."""


def probes(run: Run) -> None:
    """Run all probes; the first failure ends the stage. The session is closed at the end either way.

    Raises ``Refused`` or ``CandidateFault``.
    """
    experiments = (
        ("sensitivity", _sensitivity),
        ("repeat", _repeat),
        ("exact problems", _exact),
        ("relations", _relations),
        ("fresh contents", _fresh),
        ("drawn sizes", _sizes),
    )
    try:
        session = session_of(run)
        for done, (name, experiment) in enumerate(experiments):
            run.progress(Stage.PROBES, done, len(experiments), name)
            experiment(run, session)
    finally:
        end_session(run)
    run.progress(Stage.PROBES, len(experiments), len(experiments), "all probes passed")


def _sensitivity(run: Run, session: Session) -> None:
    backend = Backend(run.request.backend)
    dims = {**_dims(run), run.spec.outputs[0].dims[0]: SPIKED_ROWS[backend]}
    _judged(session, session.problem("probe: spikes", dims, "stratified_spikes", _attributes(run), _dtype(run)))


def _exact(run: Run, session: Session) -> None:
    draw = generator(_seed(run), "exact")
    dtype = dtype_of(_dtype(run))
    for probe in load_implementation(run.spec).exact_probes(_dims(run), dtype, draw):
        name = f"probe: {probe.name}"
        problem = Problem(name, _dims(run), probe.inputs, probe.attributes, _dtype(run))
        collected = session.outputs(problem)
        for output, right in probe.outputs.items():
            _same(run, name, output, collected.values[output], right, "differs from the exact answer", "exact_wrong")


def _relations(run: Run, session: Session) -> None:
    base = session.problem("probe: relations", _dims(run), "normal", _attributes(run), _dtype(run))
    original = session.outputs(base).values
    draw = generator(_seed(run), "relations")
    for relation in load_implementation(run.spec).relations(base.inputs, base.attributes, draw):
        problem = Problem(f"probe: {relation.name}", base.dims, relation.inputs, relation.attributes, base.dtype)
        _related(run, session, base, original, problem, relation)


def _related(
    run: Run, session: Session, base: Problem, original: Tensors, problem: Problem, relation: Relation
) -> None:
    transformed = session.outputs(problem).values
    wanted = relation.outputs(original)
    bounds, allowed = session.answer(problem), session.answer(base)
    for output, value in transformed.items():
        if relation.exact:
            _same(run, problem.name, output, value, wanted[output], "breaks this relation", "relation_broken")
            continue
        slack = bounds[output].bound + relation.outputs({output: allowed[output].bound})[output]
        miss = (value.double() - wanted[output].double()).abs() > slack
        if bool(miss.any()):
            text = (
                f"The kernel breaks a relation that must hold: {relation.name}. {int(miss.sum())} of {miss.numel()} "
                f"elements of '{output}' differ by more than both bounds together."
            )
            raise Refused(Outcome.INCORRECT_NUMERIC, Reason("relation_broken", run.stage, text, case=problem.name))


def _repeat(run: Run, session: Session) -> None:
    backend = Backend(run.request.backend)
    problem = session.problem("probe: repeat", _dims(run), "normal", _attributes(run), _dtype(run))
    answers = session.answer(problem)
    first: Tensors | None = None
    for _ in range(REPEATS[backend]):
        values = session.outputs(problem).values
        if first is None:
            first = values
        for output in answers:
            if run.spec.deterministic and not _equal_bits(values[output], first[output]):
                different = int((_bits(values[output]) != _bits(first[output])).sum())
                text = (
                    f"Equal inputs gave different bits: {different} of {values[output].numel()} elements of '{output}' "
                    "changed between two calls. Remove the race or the source of randomness; sum in a fixed order."
                )
                reason = Reason("nondeterministic", run.stage, text, case=problem.name)
                raise Refused(Outcome.INCORRECT_NONDETERMINISTIC, reason)


def _fresh(run: Run, session: Session) -> None:
    for turn in range(FRESH[Backend(run.request.backend)]):
        name = f"probe: fresh contents {turn + 1}"
        _judged(session, session.problem(name, _dims(run), "normal", _attributes(run), _dtype(run)))


def _sizes(run: Run, session: Session) -> None:
    """Sizes from the secret seed, small ones as likely as large ones, in place of a case's own."""
    backend = Backend(run.request.backend)
    draw = generator(_seed(run), "sizes")
    cases = [case for case in cases_for(run.spec, backend) if case.layout == "dense" and all(case.dims.values())]
    for turn in range(SIZES[backend] if run.spec.free_dims else 0):
        case = cases[int(torch.randint(len(cases), (), generator=draw))]
        drawn = {}
        for dim, largest in run.spec.free_dims.items():
            most = largest if backend is Backend.NUMBA else max(2, largest // INTERPRETED_SHARE)
            drawn[dim] = round(math.exp(float(torch.rand((), generator=draw)) * math.log(most)))
        sizes = " ".join(f"{dim} {size}" for dim, size in drawn.items())
        dims = {**case.dims, **drawn}
        name = f"probe: drawn sizes {turn + 1} ({sizes})"
        _judged(session, session.problem(name, dims, run.workload.regimes, case.attributes, _dtype(run)))


def _judged(session: Session, problem: Problem) -> None:
    result = session.judge(problem)
    if result.faults:
        raise Refused(result.faults[0][0], *result.reasons)


def _same(run: Run, case: str, output: str, got: torch.Tensor, right: torch.Tensor, what: str, code: str) -> None:
    """Refuse unless ``got`` equals ``right`` exactly (zeros of either sign are equal, NaN equals NaN)."""
    wrong = (got != right) & ~(torch.isnan(got) & torch.isnan(right))
    if not bool(wrong.any()):
        return
    flat = int(wrong.flatten().int().argmax())
    value, wanted = float(got.flatten()[flat]), float(right.flatten()[flat])
    text = (
        f"Output '{output}' {what} in {int(wrong.sum())} of {wrong.numel()} elements ({dtype_name(got.dtype)}): first "
        f"got {value!r} where {wanted!r} is exact in any order of evaluation. Case '{case}'."
    )
    raise Refused(Outcome.INCORRECT_NUMERIC, Reason(code, run.stage, text, case=case))


def _bits(values: torch.Tensor) -> torch.Tensor:
    return values.contiguous().view(torch.uint8)


def _equal_bits(left: torch.Tensor, right: torch.Tensor) -> bool:
    return torch.equal(_bits(left), _bits(right))


def _seed(run: Run) -> int:
    if run.seed is None:
        raise RuntimeError("probes need the seed that smoke draws")
    return run.seed


def _smoke_case_of(run: Run) -> Case:
    return next(case for case in cases_for(run.spec, Backend(run.request.backend)) if case.smoke)


def _dims(run: Run) -> Dims:
    return _smoke_case_of(run).dims


def _attributes(run: Run) -> dict[str, float]:
    return dict(_smoke_case_of(run).attributes)


def _dtype(run: Run) -> str:
    return dtype_for(_smoke_case_of(run), run.workload, Backend(run.request.backend))
