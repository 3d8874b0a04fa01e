"""Evaluation requests for a campaign's actions: one place, so that every runner asks the same question."""

from __future__ import annotations

from harness.domain.goal import Goal
from harness.domain.request import EvaluationRequest, OperatorRef, Opponent, Required, SourceRef
from harness.domain.vocabulary import Backend, Purpose, Role, Tier
from harness.engine.actions import Evaluate, EvaluateBaseline
from harness.engine.state import CampaignState

DEADLINE_S = 180.0


SCRIPTED = ("playbook", "autotune")
"""Agents whose kernels are transformations of shipped ones: they may run where few walls stand, promoted or not."""


def required_of(goal: Goal) -> Required:
    """What the machine has to offer a campaign's candidates."""
    return Required(isolation=0) if goal.agent.kind in SCRIPTED else Required()


def request_of(state: CampaignState, action: EvaluateBaseline | Evaluate, *, job: str, nonce: str,
               deadline_s: float = DEADLINE_S) -> EvaluationRequest:
    """The request document of an ``EvaluateBaseline`` or ``Evaluate`` action."""
    if isinstance(action, EvaluateBaseline):
        return _request(state, action.kernel, (), Tier.HEAVY, Purpose.ROUND, job, nonce, deadline_s)
    return _request(state, action.candidate, action.against, action.grant, Purpose.ROUND, job, nonce, deadline_s)


def final_request(state: CampaignState, *, job: str, nonce: str, champion: SourceRef | None = None,
                  deadline_s: float = DEADLINE_S) -> EvaluationRequest:
    """R19: one fresh paired measurement of the final kernel against round 0 and, where there is one, the champion."""
    against = [Opponent(Role.BASELINE, state.baseline.digest, state.baseline.source)]
    if champion is not None:
        against.append(Opponent(Role.CHAMPION, champion.digest, champion.source))
    return _request(state, state.incumbent.kernel, tuple(against), Tier.HEAVY, Purpose.PROBE, job, nonce, deadline_s)


def _request(state: CampaignState, candidate: SourceRef, against: tuple[Opponent, ...], grant: Tier, purpose: Purpose,
             job: str, nonce: str, deadline_s: float) -> EvaluationRequest:
    goal: Goal = state.goal
    return EvaluationRequest(
        job=job, nonce=nonce, purpose=purpose, operator=OperatorRef(goal.operator, state.operator_version),
        backend=goal.backend, hardware=goal.hardware, workload=goal.workload, goal=goal, candidate=candidate,
        against=against, grant=grant, required=required_of(goal), deadline_s=deadline_s,
        profile=goal.backend is Backend.TRITON,  # where a GPU judges: of round 0 and of whatever becomes the incumbent
    )
