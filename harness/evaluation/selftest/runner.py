"""Running the corpus through the evaluator itself, up to the probes: no benchmark is needed to refuse or accept."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterable, Iterator

from harness.domain.digest import digest_source
from harness.domain.goal import ALWAYS_PROHIBITED, Goal
from harness.domain.request import EvaluationRequest, OperatorRef, Opponent, Required, SourceRef
from harness.domain.verdict import Verdict
from harness.domain.vocabulary import Backend, Outcome, Purpose, Role, Stage
from harness.evaluation.run import Place
from harness.evaluation.selftest.corpus import CorpusKernel
from harness.evaluation.selftest.results import CorpusResult
from harness.operators import registry

NOT_JUDGED = (Outcome.INFRA_ERROR, Outcome.UNSUPPORTED_HERE)


def run_corpus(kernels: Iterable[CorpusKernel], hardware: str | None = None) -> Iterator[CorpusResult]:
    """Evaluate each kernel in turn in this process and yield what came out; one kernel's fate never touches the next.

    ``hardware`` is the GPU that judges Triton kernels; ``None`` leaves them to the interpreter.
    """
    for kernel in kernels:
        yield run_one(kernel, hardware=hardware)


def run_one(kernel: CorpusKernel, until: Stage = Stage.PROBES, hardware: str | None = None) -> CorpusResult:
    """Evaluate one kernel up to and including stage ``until``."""
    from harness.evaluation.pipeline import evaluate  # the sandbox is only loaded where something is run

    began = time.monotonic()
    place = place_of(kernel.backend, hardware)
    verdict = evaluate(request_for(kernel, hardware), until=until)
    reason = verdict.reasons[0] if verdict.reasons else None
    return CorpusResult(kernel=kernel, outcome=verdict.outcome, stage=verdict.stage,
                        code=reason.code if reason else None, text=reason.text if reason else "",
                        right=is_right(kernel, verdict, place), seconds=time.monotonic() - began, place=place,
                        environment=verdict.environment.class_, isolation=verdict.evaluator.isolation.level)


def place_of(backend: Backend, hardware: str | None) -> Place:
    """Where a kernel of ``backend`` is judged when ``hardware`` is asked for."""
    if backend is Backend.NUMBA:
        return Place.NUMBA
    return Place.INTERPRETER if hardware is None else Place.DEVICE


def is_right(kernel: CorpusKernel, verdict: Verdict, place: Place) -> bool | None:
    """Whether the verdict is one of those the corpus accepts at ``place``; ``None`` where there is no judgement."""
    if verdict.outcome in NOT_JUDGED:
        return None
    stage = kernel.expected_stage(place)
    return verdict.outcome in kernel.expected(place) and (stage is None or verdict.stage is stage)


def request_for(kernel: CorpusKernel, hardware: str | None = None) -> EvaluationRequest:
    """The evaluation request of a corpus kernel: on this machine's CPU, or on its GPU ``hardware`` for Triton."""
    from harness.hardware.detect import hardware_name

    spec = registry.get(kernel.operator)
    where = hardware_name() if kernel.backend is Backend.NUMBA else hardware or "interpreter"
    workload = next(iter(spec.workloads))
    goal = Goal(operator=spec.name, backend=kernel.backend, hardware=where, workload=workload, grant=kernel.grant,
                prohibited=(*ALWAYS_PROHIBITED, *kernel.prohibited))
    baseline = spec.baseline(kernel.backend)
    role = Role.INCUMBENT if kernel.incumbent == "baseline" else Role.BASELINE
    return EvaluationRequest(
        job=uuid.uuid4().hex, nonce=os.urandom(8).hex(), purpose=Purpose.SELFTEST,
        operator=OperatorRef(spec.name, spec.version), backend=kernel.backend, hardware=where, workload=workload,
        goal=goal, candidate=SourceRef(digest_source(kernel.source), kernel.source),
        against=(Opponent(role, digest_source(baseline), baseline),), grant=kernel.grant,
        required=Required(isolation=0), deadline_s=kernel.deadline_s)
