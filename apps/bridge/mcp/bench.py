"""The agent's own tools over a campaign's rows: the same ones, with the same rules, as a language model of this server
has. What they read comes from the rows at every call, so that a restart loses nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from apps.bridge.mcp import askings
from apps.bridge.mcp.hand_in import hand_in
from apps.bridge.mcp.reply import Reply
from apps.bridge.mcp.standing import Standing, standing_of
from apps.campaigns.models import Campaign
from apps.core.errors import ImpossibleTransition, Refused
from apps.teams import policies
from apps.teams.tokens import Caller
from harness.agents.llm import tools as agents
from harness.agents.llm.prompt import ROOMS, build
from harness.campaign.context import context_of
from harness.domain.codec import from_document, to_document
from harness.domain.errors import UsageError
from harness.domain.proposal import Hypothesis
from harness.engine.actions import AskAgent
from harness.hardware.digests import digest

KIND = "mcp"
ANSWERS = frozenset({"state_hypotheses", "submit_candidate", "give_up"})
"""Tools that answer what the campaign asks for. They need the scope to run campaigns, and the agent's turn."""


def agents_tools() -> Mapping[str, agents.Tool]:
    """By name."""
    return agents.TOOLS


def call(caller: Caller, campaign: Campaign, name: str, arguments: Mapping[str, Any]) -> Reply:
    """Run a tool of the agent on ``campaign``.

    Raises:
        Refused: the token lacks the scope. ImpossibleTransition: it is not the agent's turn.
    """
    assert caller.token is not None
    scope = caller.token.can_run_campaigns
    if name in ANSWERS:
        _may_answer(caller, campaign)
    standing = standing_of(campaign)
    if standing.state is None:
        raise ImpossibleTransition(f"{campaign} is not running here: there is nothing to read.", code="not_your_turn")
    if standing.asked is None or not scope:
        if name in ANSWERS:
            raise ImpossibleTransition(f"It is not your turn: {_awaited(standing)} wait_for_verdict says when it is.",
                                       code="not_your_turn")
        result = agents.call(_bench(standing), name, json.dumps(arguments))  # read, and no evidence of anything
        return Reply(result.text, is_error=result.is_error)
    return _asked(caller, standing, standing.asked, name, arguments)


def brief(campaign: Campaign) -> Reply:
    """What a language model of this server would be told in the present asking.

    Raises:
        ImpossibleTransition: the campaign asks for nothing now.
    """
    standing = standing_of(campaign)
    if standing.asked is None:
        raise ImpossibleTransition(f"Nothing is asked of you now: {_awaited(standing)}", code="not_your_turn")
    prompt = build(_bench(standing).context, ROOMS[0])
    return Reply(f"{prompt.system}\n\n{prompt.task}")


def _asked(caller: Caller, standing: Standing, asked: AskAgent, name: str, arguments: Mapping[str, Any]) -> Reply:
    """A call while the agent is asked: it is written down, and an answer is handed in."""
    assert caller.token is not None
    campaign, bench = standing.campaign, _bench(standing)
    before = askings.asking_of(campaign, asked.round, len(asked.bounced) + 1)
    stated = bench.stated = tuple(from_document(document, Hypothesis) for document in before.stated)
    bench.log_read = before.log_queries > 0
    result = agents.call(bench, name, json.dumps(arguments))
    row = askings.asking_note(asking=before, noted=askings.Noted(
        name, caller.token.pk, result.is_error, None if bench.stated is stated else to_document(list(bench.stated)),
        bench.context.log.queries > 0 and not result.is_error))
    if result.ends is None:
        return Reply(result.text, is_error=result.is_error)
    trace = {"agent": "outside of this server, through MCP", "calls": row.journal}
    read = row.log_queries > 0
    proposal = replace(result.ends, queried_log=read, trace=trace)
    return hand_in(caller, campaign, asked, proposal, queried_log=read, said=result.text)


def _bench(standing: Standing) -> agents.Workbench:
    state = standing.state
    assert state is not None
    asked = standing.asked or AskAgent(len(state.rounds) + 1, "candidate")
    return agents.Workbench(context_of(state, asked, hardware=_hardware(state.goal.hardware)))


@lru_cache(maxsize=32)
def _hardware(name: str) -> dict[str, Any]:
    try:
        return digest(name).for_agents()
    except UsageError:
        return {}


def _may_answer(caller: Caller, campaign: Campaign) -> None:
    assert caller.token is not None
    if not caller.token.can_run_campaigns:
        raise Refused("This API token may only read. A maintainer can create one that may run campaigns.")
    why = policies.may_run_campaigns(caller.user, campaign.team, token_scope=True)
    if why:
        raise Refused(why)


def _awaited(standing: Standing) -> str:
    campaign = standing.campaign
    if standing.waits_for == "person":
        return f"{campaign} waits for a person ({campaign.state}: {campaign.cause})"
    if standing.waits_for == "nobody":
        return f"{campaign} is over ({campaign.state})."
    return f"{campaign} is being measured or prepared."

