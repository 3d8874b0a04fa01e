"""From a campaign's state to what an agent may know, and from its answer to a result."""

from __future__ import annotations

import math
from collections.abc import Mapping

from harness.agents.errors import AgentError
from harness.agents.profile import profile_of
from harness.agents.protocol import Agent, AgentContext, Attempt, LogBook, ReviewComment
from harness.campaign.door import admitted
from harness.domain.proposal import Proposal
from harness.domain.words import REASON_KEPT, plain
from harness.engine import rules
from harness.engine.actions import AskAgent
from harness.engine.log import log_entries
from harness.engine.results import AgentFailed, Proposed, proposed
from harness.engine.state import CampaignState, direction_key
from harness.evaluation.source.params import narrowed
from harness.operators import registry
from harness.operators.base import OperatorSpec


def context_of(state: CampaignState, action: AskAgent, *, spec: OperatorSpec | None = None,
               hardware: Mapping[str, object] | None = None) -> AgentContext:
    """The context of one turn. ``hardware`` is the hardware digest as facts (the caller looks it up once)."""
    goal = state.goal
    spec = narrowed(spec or registry.get(goal.operator), goal.adjustable)
    incumbent = state.incumbent
    return AgentContext(
        goal=goal, spec=spec, grant=state.grant, round=action.round, purpose=action.purpose,
        log=LogBook(log_entries(state)), baseline=state.baseline, incumbent=incumbent.kernel,
        incumbent_round=incumbent.round, incumbent_normal=incumbent.normal_digest,
        baseline_verdict=state.baseline_verdict, incumbent_verdict=incumbent.verdict,
        profile=profile_of(spec, goal.backend, goal.workload, incumbent.verdict, incumbent.kernel.source),
        hardware=dict(hardware or {}), hypotheses=state.hypotheses, open_hypotheses=rules.open_hypotheses(state),
        struck=state.struck, closed_directions=rules.closed_directions(state),
        retry_available=state.retry_round is None, tried=rules.tried(state), attempts=attempts_of(state),
        feedback=tuple(ReviewComment(f.person, f.kernel, f.decision, f.text) for f in state.feedback),
        bounced=action.bounced, steering=state.steering, forbidden=dict(state.forbidden), spent=state.spent,
        agent=state.choice, budget=state.allowance,
    )


def attempts_of(state: CampaignState) -> tuple[Attempt, ...]:
    """Concluded rounds that had a candidate."""
    return tuple(
        Attempt(r.number, r.hypothesis.id, direction_key(r.hypothesis), r.kernel, r.normal_digest, r.verdict)
        for r in state.concluded if r.hypothesis is not None and r.kernel is not None and r.verdict is not None
    )


def ask(agent: Agent, context: AgentContext) -> Proposed | AgentFailed:
    """One asking of an agent as a result: its proposal with the evidence that it read the log, or its failure.

    Raises:
        AgentCancelled: the answer was stopped; there is no result.
    """
    try:
        proposal = agent.propose(context)
    except AgentError as error:
        return AgentFailed(context.round, plain(error.text, REASON_KEPT), error.blame, error.tokens, error.money,
                           error.turns)
    return answered(AskAgent(context.round, context.purpose), proposal, queried_log=context.log.queries > 0)


def answered(asked: AskAgent, proposal: Proposal, *, queried_log: bool) -> Proposed | AgentFailed:
    """A proposal, whoever made it, as the result that the engine folds. ``queried_log`` is the evidence of whoever
    asked that the log was read in this asking."""
    paid = _paid(proposal.trace or {})
    try:
        proposal = admitted(proposal)
    except AgentError as error:
        return AgentFailed(asked.round, error.text, "model", *paid)
    tokens, money, turns = paid
    return proposed(asked.round, proposal, queried_log=queried_log, tokens=tokens, money=money, turns=turns,
                    purpose=asked.purpose)


def _paid(trace: Mapping[str, object]) -> tuple[int, float, int]:
    """What the agent says its conversation cost. The web runner goes by the stored turns instead."""
    return int(_number(trace.get("tokens"))), _number(trace.get("money")), int(_number(trace.get("turns")))


def _number(value: object) -> float:
    plain_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return max(0.0, float(value)) if plain_number else 0.0  # type: ignore[arg-type]
