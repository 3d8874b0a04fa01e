"""Asking an agent for a proposal: outside of every transaction, with the log as evidence, told exactly once."""

from __future__ import annotations

import logging
from typing import Any

from apps.bridge.runner.context import context_of
from apps.campaigns import services
from apps.campaigns.choices import HypothesisState
from apps.campaigns.models import Campaign
from harness.agents.errors import AgentError
from harness.agents.protocol import Agent
from harness.agents.registry import make_agent
from harness.domain.errors import HarnessError
from harness.domain.proposal import Proposal
from harness.engine import actions, results
from harness.engine.results import result_to_document
from harness.engine.state import CampaignState

log = logging.getLogger(__name__)


def ask_agent(*, campaign: Campaign, fence: int, state: CampaignState, action: actions.AskAgent,
              agents: dict[str, Agent]) -> None:
    """Open the round, ask, tell the answer. Killed in between, the agent is asked again and nothing is counted twice.

    Raises:
        LeaseLost, ImpossibleTransition: from telling; the answer is dropped.
    """
    row = services.round_start(campaign=campaign, fence=fence, number=action.round)
    result, trace = _answer(campaign, state, action, agents)
    services.engine_tell(campaign=campaign, document=result_to_document(result), fence=fence)
    if trace is not None:
        services.round_trace_set(row=row, trace=trace)


def _answer(campaign: Campaign, state: CampaignState, action: actions.AskAgent,
            agents: dict[str, Agent]) -> tuple[results.Result, dict[str, Any] | None]:
    context = context_of(state, action, struck=_struck(campaign))
    kind = state.goal.agent.kind
    try:
        if kind not in agents:
            agents[kind] = make_agent(state.goal.agent)
        proposal = agents[kind].propose(context)
    except AgentError as error:
        return results.AgentFailed(action.round, error.text, error.blame), None
    except HarnessError as error:
        return results.AgentFailed(action.round, error.text, "provider"), None
    except Exception as error:
        log.exception("The %s agent of campaign %s broke.", kind, campaign.pk)
        text = f"The {kind} agent broke: {type(error).__name__}: {error}"
        return results.AgentFailed(action.round, text, "provider"), None
    told = results.proposed(action.round, proposal, queried_log=context.log.queries > 0, tokens=_tokens(proposal))
    return told, proposal.trace


def _tokens(proposal: Proposal) -> int:
    """Tokens spent on this turn, as the agent counted them."""
    spent = (proposal.trace or {}).get("tokens", 0)
    return spent if isinstance(spent, int) and spent > 0 else 0


def _struck(campaign: Campaign) -> tuple[str, ...]:
    """Hypotheses that a person struck; an agent must not bring them back."""
    rows = campaign.hypotheses.filter(state=HypothesisState.STRUCK)
    return tuple(rows.order_by("id").values_list("key", flat=True))

