"""Asking an agent for a proposal: outside of every transaction, told exactly once."""

from __future__ import annotations

import logging

from apps.campaigns import services
from apps.campaigns.models import Campaign
from harness.agents.protocol import Agent
from harness.agents.registry import make_agent
from harness.campaign.context import ask, context_of
from harness.domain.errors import HarnessError, UsageError
from harness.domain.goal import AgentChoice
from harness.engine import actions, results
from harness.engine.results import result_to_document
from harness.engine.state import CampaignState
from harness.hardware.digests import digest

log = logging.getLogger(__name__)


def ask_agent(*, campaign: Campaign, fence: int, state: CampaignState, action: actions.AskAgent,
              agents: dict[AgentChoice, Agent]) -> None:
    """Open the round, ask, tell the answer. Killed in between, the agent is asked again and nothing is counted twice.

    Raises:
        LeaseLost, ImpossibleTransition: from telling; the answer is dropped.
    """
    row = services.round_start(campaign=campaign, fence=fence, number=action.round)
    result = _answer(campaign, state, action, agents)
    services.engine_tell(campaign=campaign, document=result_to_document(result), fence=fence)
    if isinstance(result, results.Proposed) and result.proposal.trace is not None:
        services.round_trace_set(row=row, trace=result.proposal.trace)


def _answer(campaign: Campaign, state: CampaignState, action: actions.AskAgent,
            agents: dict[AgentChoice, Agent]) -> results.Proposed | results.AgentFailed:
    """Whatever breaks here is the installation's fault, pauses the campaign and counts against nothing."""
    kind, choice = state.goal.agent.kind, state.goal.agent
    try:
        if choice not in agents:
            agents[choice] = make_agent(choice)
        return ask(agents[choice], context_of(state, action, hardware=_hardware(state.goal.hardware)))
    except HarnessError as error:
        return results.AgentFailed(action.round, error.text, "provider")
    except Exception as error:
        log.exception("The %s agent of campaign %s broke.", kind, campaign.pk)
        text = f"The {kind} agent broke: {type(error).__name__}: {error}"
        return results.AgentFailed(action.round, text, "provider")


def _hardware(name: str) -> dict[str, object]:
    try:
        return digest(name).for_agents()
    except UsageError:
        return {}
