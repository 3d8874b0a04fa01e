"""From a run that ended to its verdict document."""

from __future__ import annotations

from dataclasses import replace

from harness import EVALUATOR_VERSION
from harness.domain.verdict import Evaluator, Isolation, Reason, Verdict
from harness.domain.vocabulary import Backend, Comparison, Outcome, blame_of
from harness.evaluation.run import Refused, Run
from harness.hardware.detect import environment, hardware_name

MODE = {Backend.NUMBA: "numba", Backend.TRITON: "triton-plan"}
"""The sandbox mode whose proved isolation level a verdict carries."""


def verdict_of(run: Run, refused: Refused | None, clocks: dict[str, float], samples: str | None) -> Verdict:
    """Freeze what a run found.

    A refusal drops timing and comparison: a latency exists only where the outcome is ``passed``.
    ``samples`` is the digest of the raw samples, ``None`` where nothing was timed.
    """
    outcome = Outcome.PASSED if refused is None else refused.outcome
    reasons: tuple[Reason, ...] = () if refused is None else refused.reasons
    timed = refused is None and run.timing is not None
    return Verdict(
        kernel=run.request.candidate.digest,
        operator=run.request.operator,
        backend=run.request.backend,
        hardware=_hardware(run),
        target=run.target,
        environment=replace(environment(run.request.backend, run.device), clocks=dict(run.clocks)),
        evaluator=Evaluator(version=EVALUATOR_VERSION, isolation=_isolation(run)),
        outcome=outcome,
        stage=run.stage,
        blame=blame_of(outcome),
        reasons=reasons,
        notes=tuple(run.notes),
        step_tier=run.step_tier,
        correctness=run.correctness,
        resources=run.resources,
        timing=run.timing if timed else None,
        comparison=run.comparison if timed else Comparison.NONE,
        compared_with=str(run.compared_role) if timed and run.compared_role else None,
        regressions=run.regressions if timed else (),
        score=run.score if timed else None,
        suspicious=tuple(run.suspicious),
        seed=None if run.seed is None else f"{run.seed:032x}",
        stages=clocks,
        samples=samples,
        profile=run.profile if timed else None,
    )


def _hardware(run: Run) -> str:
    """The device that the figures belong to; a Triton candidate without one was interpreted."""
    if run.request.backend is Backend.TRITON:
        return run.device or "interpreter"
    return hardware_name()


def _isolation(run: Run) -> Isolation:
    """The level proved in this process, without starting a sandbox for a candidate that static refused."""
    from harness.evaluation import sandbox

    return sandbox.proved_isolation(MODE[run.request.backend])
