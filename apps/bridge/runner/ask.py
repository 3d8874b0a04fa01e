"""Asking an agent for a proposal: outside of every transaction, told exactly once."""

from __future__ import annotations

import logging
import os
import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import DatabaseError

from apps.bridge.runner.cleaned import Cleaned
from apps.bridge.runner.desk import desk_for
from apps.bridge.runner.keys import key_names, secrets_of
from apps.campaigns import services
from apps.campaigns.models import Campaign
from apps.campaigns.turns.selectors import paid
from apps.core.errors import AppError
from harness.agents.errors import AgentCancelled
from harness.agents.llm.redaction import without
from harness.agents.protocol import Agent
from harness.agents.registry import make_agent
from harness.campaign.context import ask, context_of
from harness.domain.errors import HarnessError, UsageError
from harness.domain.goal import AgentChoice
from harness.domain.steering import Spent
from harness.domain.words import REASON_KEPT, plain
from harness.engine import actions, results
from harness.engine.results import result_to_document
from harness.engine.state import CampaignState
from harness.hardware.digests import digest

if TYPE_CHECKING:
    from harness.agents.autotune.agent import Planner

log = logging.getLogger(__name__)
OUTSIDE = "mcp"
Answered = results.Proposed | results.AgentFailed


def ask_agent(*, campaign: Campaign, fence: int, state: CampaignState, action: actions.AskAgent,
              agents: dict[AgentChoice, Agent], cancelled: Callable[[], bool] = lambda: False) -> None:
    """Open the round, ask, tell the answer. Killed in between, the agent is asked again and nothing is counted twice;
    a language model's complete turns are used again. ``cancelled`` is looked at while a model answers: then nothing is
    told at all.

    Raises:
        LeaseLost, ImpossibleTransition: from telling; the answer is dropped.
    """
    row = services.round_start(campaign=campaign, fence=fence, number=action.round)
    result = _answer(campaign, fence, state, action, agents, cancelled)
    if result is None:
        return
    if state.goal.agent.kind == "openai":
        result = _as_stored(campaign, state, result)
    services.engine_tell(campaign=campaign, document=result_to_document(result), fence=fence)
    if isinstance(result, results.Proposed) and result.proposal.trace is not None:
        services.round_trace_set(row=row, trace=result.proposal.trace)


def wait_for_outside(*, campaign: Campaign, fence: int, action: actions.AskAgent) -> None:
    """Open the round for an agent outside of this server, which hands its proposal in when it likes."""
    services.round_start(campaign=campaign, fence=fence, number=action.round)


def _answer(campaign: Campaign, fence: int, state: CampaignState, action: actions.AskAgent,
            agents: dict[AgentChoice, Agent], cancelled: Callable[[], bool]) -> Answered | None:
    """Whatever breaks here is the installation's fault, pauses the campaign and counts against nothing."""
    kind = state.goal.agent.kind
    try:
        agent = _agent(campaign, fence, state, agents, cancelled)
        context = context_of(state, action, hardware=_hardware(state.goal.hardware))
        return ask(agent, replace(context, spent=_spent_before(campaign, state)) if kind == "openai" else context)
    except AgentCancelled as stopped:
        log.info("Campaign %s: %s", campaign.pk, stopped.text)
        return None
    except (AppError, DatabaseError):
        raise  # the lease is another engine's by now, or rows could not be written: not the agent's doing, tried again
    except HarnessError as error:
        return results.AgentFailed(action.round, plain(_clean(error.text), REASON_KEPT), "provider")
    except Exception as error:  # noqa: BLE001 - it is logged without keys
        log.error("The %s agent of campaign %s broke.\n%s", kind, campaign.pk, _clean(traceback.format_exc()))
        text = plain(_clean(f"The {kind} agent broke: {type(error).__name__}: {error}"), REASON_KEPT)
        return results.AgentFailed(action.round, text, "provider")


def _clean(text: str) -> str:
    """What an exception says, without the keys: it may quote what an endpoint sent."""
    return without(text, _secrets())


def _secrets() -> tuple[str, ...]:
    return secrets_of(os.environ, key_names(settings.ENDPOINTS_PATH))


def _agent(campaign: Campaign, fence: int, state: CampaignState, agents: dict[AgentChoice, Agent],
           cancelled: Callable[[], bool]) -> Agent:
    choice = state.choice
    if choice.kind == "openai":  # it remembers nothing: its turns are rows
        made = make_agent(choice, desk=desk_for(campaign, fence, cancelled, state.allowance))
        return Cleaned(made, _secrets())
    if choice not in agents:
        agents[choice] = make_agent(choice, _planner(state))
    return agents[choice]


def _planner(state: CampaignState) -> Planner | None:
    """What rules kernels out before a round is spent on them, where the agent searches."""
    if state.goal.agent.kind != "autotune":
        return None
    from harness.search.planner import planner_for

    return planner_for(state.goal)


def _spent_before(campaign: Campaign, state: CampaignState) -> Spent:
    """What was spent before the round that is asked for. An asking counts its own turns, kept ones as well, whether or
    not an outage in its middle counted them already; and the same asking has the same limits each time it goes on."""
    record = state.active_round
    before = paid(campaign, before_round=record.number if record is not None else len(state.rounds) + 1)
    return replace(state.spent, tokens=before.tokens, money=before.money, turns=before.turns)


def _as_stored(campaign: Campaign, state: CampaignState, result: Answered) -> Answered:
    """What the answer cost by the stored turns, whatever the agent says: everything paid and not yet counted."""
    all_of_it = paid(campaign)
    return replace(result, tokens=max(0, all_of_it.tokens - state.tokens),
                   money=max(0.0, all_of_it.money - state.money), turns=max(0, all_of_it.turns - state.turns))


def _hardware(name: str) -> dict[str, object]:
    try:
        return digest(name).for_agents()
    except UsageError:
        return {}
