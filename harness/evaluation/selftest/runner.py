"""Running the corpus through the evaluator itself, up to the probes: no benchmark is needed to refuse or accept."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from harness.domain.digest import digest_source
from harness.domain.goal import ALWAYS_PROHIBITED, Goal
from harness.domain.request import EvaluationRequest, OperatorRef, Opponent, Required, SourceRef
from harness.domain.verdict import Verdict
from harness.domain.vocabulary import Backend, Outcome, Purpose, Role, Stage
from harness.evaluation.selftest.corpus import CorpusKernel
from harness.operators import registry

NOT_JUDGED = (Outcome.INFRA_ERROR, Outcome.UNSUPPORTED_HERE)


@dataclass(frozen=True, slots=True)
class CorpusResult:
    """What happened to one kernel. ``right`` is ``None`` where the evaluator could not judge it.

    ``environment`` and ``isolation`` are the verdict's: a pass counts for that environment class and level only.
    """

    kernel: CorpusKernel
    outcome: Outcome
    stage: Stage
    code: str | None
    text: str
    right: bool | None
    seconds: float
    environment: str | None = None
    isolation: int | None = None

    @property
    def failed(self) -> bool:
        """A cheat or wrong kernel slipped through, or an honest one was refused. One that was refused for another
        reason than the table names is not ``right``, but nobody was misled by it."""
        return self.right is False and (self.kernel.kind == "honest" or self.outcome is Outcome.PASSED)


def run_corpus(kernels: Iterable[CorpusKernel]) -> Iterator[CorpusResult]:
    """Evaluate each kernel in turn and yield what came out; one kernel's fate never touches the next."""
    for kernel in kernels:
        yield run_one(kernel)


def run_one(kernel: CorpusKernel, until: Stage = Stage.PROBES) -> CorpusResult:
    """Evaluate one kernel up to and including stage ``until``."""
    from harness.evaluation.pipeline import evaluate  # the sandbox is only loaded where something is run

    began = time.monotonic()
    verdict = evaluate(request_for(kernel), until=until)
    reason = verdict.reasons[0] if verdict.reasons else None
    return CorpusResult(kernel=kernel, outcome=verdict.outcome, stage=verdict.stage,
                        code=reason.code if reason else None, text=reason.text if reason else "",
                        right=is_right(kernel, verdict), seconds=time.monotonic() - began,
                        environment=verdict.environment.class_, isolation=verdict.evaluator.isolation.level)


def is_right(kernel: CorpusKernel, verdict: Verdict) -> bool | None:
    """Whether the verdict is one of those the corpus accepts; ``None`` where there is no judgement."""
    if verdict.outcome in NOT_JUDGED:
        return None
    return verdict.outcome in kernel.outcomes and (kernel.stage is None or verdict.stage is kernel.stage)


def request_for(kernel: CorpusKernel) -> EvaluationRequest:
    """The evaluation request of a corpus kernel, on this machine."""
    from harness.hardware.detect import hardware_name

    spec = registry.get(kernel.operator)
    hardware = hardware_name() if kernel.backend is Backend.NUMBA else "interpreter"
    workload = next(iter(spec.workloads))
    goal = Goal(operator=spec.name, backend=kernel.backend, hardware=hardware, workload=workload, grant=kernel.grant,
                prohibited=(*ALWAYS_PROHIBITED, *kernel.prohibited))
    baseline = spec.baseline(kernel.backend)
    role = Role.INCUMBENT if kernel.incumbent == "baseline" else Role.BASELINE
    return EvaluationRequest(
        job=uuid.uuid4().hex, nonce=os.urandom(8).hex(), purpose=Purpose.SELFTEST,
        operator=OperatorRef(spec.name, spec.version), backend=kernel.backend, hardware=hardware, workload=workload,
        goal=goal, candidate=SourceRef(digest_source(kernel.source), kernel.source),
        against=(Opponent(role, digest_source(baseline), baseline),), grant=kernel.grant,
        required=Required(isolation=0), deadline_s=kernel.deadline_s)
