"""The evaluation from request to verdict: stages in order, the first failure ends it."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass

from harness.domain.codec import to_document
from harness.domain.digest import canonical_json, digest_bytes
from harness.domain.errors import HarnessError, SourceError, UsageError
from harness.domain.request import EvaluationRequest
from harness.domain.samples import Samples
from harness.domain.verdict import Reason, Verdict
from harness.domain.vocabulary import Backend, Outcome, Stage
from harness.evaluation.isolation import walled
from harness.evaluation.ports import CandidateFault
from harness.evaluation.run import Place, Progress, Refused, Run
from harness.evaluation.verdicts import verdict_of
from harness.hardware import gpu
from harness.operators import registry

SOURCE_ALONE = (Stage.ADMIT, Stage.STATIC, Stage.ARITHMETIC)
"""Stages that read the candidate's text and nothing that ran: the same text fails there every time."""
INTERPRETER_TARGET = "nvidia-h200"
"""The device whose resources a Triton plan names where the goal names none and no GPU is present."""

# Dotted ``module:function`` per stage, imported when the stage runs: a refused candidate never pays for torch.
COMMON: dict[Stage, str] = {
    Stage.ADMIT: "harness.evaluation.admit:admit",
    Stage.STATIC: "harness.evaluation.static.stage:static",
    Stage.ARITHMETIC: "harness.evaluation.arithmetic:arithmetic",
    Stage.SMOKE: "harness.evaluation.judge.smoke:smoke",
    Stage.CORRECTNESS: "harness.evaluation.judge.correctness:correctness",
    Stage.PROBES: "harness.evaluation.judge.probes:probes",
}
TRITON: dict[Stage, str] = {
    Stage.PLAN: "harness.backends.triton.stages:plan",
    Stage.RESOURCES: "harness.backends.triton.stages:resources",
}
BY_PLACE: dict[Place, dict[Stage, str]] = {
    Place.NUMBA: {
        Stage.PLAN: "harness.backends.numba.stages:plan",
        Stage.BENCHMARK: "harness.evaluation.timing.stages:benchmark",
        Stage.RECHECK: "harness.evaluation.timing.stages:recheck",
    },
    Place.INTERPRETER: TRITON,
    Place.DEVICE: TRITON | {
        Stage.PROBES: "harness.backends.triton.device.stages:probes",
        Stage.BENCHMARK: "harness.evaluation.timing.device.stages:benchmark",
        Stage.RECHECK: "harness.evaluation.timing.device.stages:recheck",
        Stage.PROFILE: "harness.evaluation.profile.stage:profile",
    },
}


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A verdict and the raw samples it was computed from (``None`` where nothing was timed)."""

    verdict: Verdict
    samples: Samples | None


def evaluate(
    request: EvaluationRequest, *, progress: Progress | None = None, until: Stage | None = None
) -> Verdict:
    """The verdict alone; see ``evaluate_fully``."""
    return evaluate_fully(request, progress=progress, until=until).verdict


def evaluate_fully(
    request: EvaluationRequest, *, progress: Progress | None = None, until: Stage | None = None
) -> Evaluation:
    """Judge ``request.candidate`` through all stages, or up to and including ``until``.

    Candidate faults never raise: they become outcomes. Faults of the evaluator become ``infra_error``.

    Raises:
        UsageError: the operator, backend or workload named by the request does not exist.
    """
    run = _start(request, progress or _silent)
    clocks: dict[str, float] = {}
    try:
        refused = _stages(run, clocks, until)
    finally:
        _close(run)
    run.settle()
    samples = run.samples if refused is None else None
    blob = None if samples is None else "blob:" + digest_bytes(canonical_json(to_document(samples)))
    return Evaluation(verdict=verdict_of(run, refused, clocks, blob), samples=samples)


def _start(request: EvaluationRequest, progress: Progress) -> Run:
    from harness.evaluation import sandbox

    spec = registry.get(request.operator.name)
    workload = spec.workloads.get(request.workload)
    if workload is None:
        known = ", ".join(spec.workloads)
        raise UsageError(f"Operator {spec.name} has no workload '{request.workload}'. Known: {known}.")
    if request.backend not in workload.shapes:
        raise UsageError(f"Workload '{workload.name}' of {spec.name} is not measured on backend {request.backend}.")
    target = None
    if request.backend is Backend.TRITON:
        target = request.goal.hardware if request.goal.hardware.startswith("nvidia-") else INTERPRETER_TARGET
    run = Run(
        request=request, spec=spec, workload=workload, open_workers=sandbox.opener, progress=progress,
        target=target, deadline=time.monotonic() + request.deadline_s,
    )
    run.open_workers = walled(run, sandbox.opener)
    if request.backend is Backend.TRITON and gpu.present(request.goal.hardware):
        _place_on_device(run)
    return run


def _place_on_device(run: Run) -> None:
    """The goal's GPU is this host's: candidates are judged and timed on it."""
    from harness.backends.triton.device.opener import workers_of
    from harness.backends.triton.launcher.process import open_device

    run.device = run.request.goal.hardware
    run.open_device = open_device
    run.open_workers = workers_of(run, run.open_workers)


def _close(run: Run) -> None:
    """End what a stage left open for the next one: an evaluation may stop between two of them."""
    for left in (run.judging, run.bench, run.bases):
        if left is not None:
            left.close()
    run.judging = run.bench = run.bases = None


def _stages(run: Run, clocks: dict[str, float], until: Stage | None) -> Refused | None:
    table = COMMON | BY_PLACE[run.place]
    for stage in Stage:
        if stage not in table or (stage is Stage.PROFILE and not run.worth_profiling):
            continue
        run.stage = stage
        if run.remaining_s <= 0 and stage is not Stage.PROFILE:  # which decides nothing and is not charged
            return _too_late(run)
        if stage is Stage.BENCHMARK:
            run.settle()
        run.progress(stage, 0, 0, "")
        began = time.monotonic()
        refused = _one(run, table[stage])
        clocks[str(stage)] = round(time.monotonic() - began, 4)
        if refused is not None or stage is until:
            return refused
    return None


def _one(run: Run, dotted: str) -> Refused | None:
    """Run one stage; every way it can end is an outcome, so that one candidate never spoils the next."""
    try:
        _load(dotted)(run)
    except Refused as refused:
        return refused
    except CandidateFault as fault:
        known = fault.fault
        reason = Reason(code=known.code, stage=run.stage, text=known.text, line=known.line, case=known.case)
        return Refused(known.outcome, reason)
    except SourceError as error:
        reason = Reason(code=error.code, stage=run.stage, text=error.text, line=error.line)
        return Refused(Outcome.POLICY_VIOLATION, reason)
    except (HarnessError, OSError, ImportError) as error:
        return _broken(run, error)
    except Exception as error:  # noqa: BLE001 - whoever is to blame, it is a verdict
        return _not_analysed(run, error) if run.stage in SOURCE_ALONE else _broken(run, error)
    return None


def _not_analysed(run: Run, error: Exception) -> Refused:
    """Nothing but the text decides how these stages end, so a repetition would end the same way: it is the text's."""
    text = (f"This source cannot be judged: stage {run.stage} ends with {type(error).__name__} on it. Write constants, "
            "launch options and PARAMS more plainly.")
    return Refused(Outcome.POLICY_VIOLATION, Reason(code="source_not_analysed", stage=run.stage, text=text))


def failed(request: EvaluationRequest, error: Exception) -> Verdict:
    """The verdict of an evaluation that ended in no verdict: ``infra_error``, with what happened.

    Raises:
        UsageError: the operator, backend or workload named by the request does not exist.
    """
    run = _start(request, _silent)
    return verdict_of(run, _broken(run, error), {}, None)


def _broken(run: Run, error: BaseException) -> Refused:
    import traceback

    where = traceback.extract_tb(error.__traceback__)[-1]
    text = (
        f"The evaluator failed in stage {run.stage}: {type(error).__name__}: {error} "
        f"({where.name}, line {where.lineno}). The candidate is not charged; the evaluation can be repeated."
    )
    return Refused(Outcome.INFRA_ERROR, Reason(code="infra_error", stage=run.stage, text=text))


def _too_late(run: Run) -> Refused:
    text = (
        f"The evaluation passed its limit of {run.request.deadline_s:g} s before stage {run.stage}. "
        "Make the kernel or its compilation faster, or raise the limit of the campaign."
    )
    return Refused(Outcome.TIMEOUT, Reason(code="timeout", stage=run.stage, text=text))


def _load(dotted: str) -> Callable[[Run], None]:
    module, _, name = dotted.partition(":")
    return getattr(importlib.import_module(module), name)


def _silent(stage: Stage, done: int, total: int, text: str) -> None:
    """Progress for callers that show none."""
