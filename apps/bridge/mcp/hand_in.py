"""Handing an outside agent's answer to the engine: once, for the asking it answers, and on behalf of known people."""

from __future__ import annotations

from apps.bridge import api
from apps.bridge.mcp.reply import Reply
from apps.campaigns import services
from apps.campaigns.models import Campaign
from apps.core.errors import MovedOn
from apps.stream.services import recording
from apps.teams.selectors import token_maker
from apps.teams.tokens import Caller
from harness.domain.proposal import Proposal
from harness.engine.actions import AskAgent
from harness.engine.results import proposed, result_to_document
from harness.engine.step import next_action

SOURCE = "outside agent"


def hand_in(caller: Caller, campaign: Campaign, asked: AskAgent, proposal: Proposal, *, queried_log: bool) -> Reply:
    """Tell the engine. Whoever the token stands for, and whoever made it, had a hand in the kernel and may not approve.

    Raises:
        MovedOn: the campaign is asking for something else by now; nothing was recorded.
    """
    assert caller.token is not None
    maker = token_maker(caller.token)
    for person in {caller.user, maker} - {None}:
        assert person is not None
        services.influence_add(campaign=campaign, user=person, source=SOURCE)
    document = result_to_document(proposed(asked.round, proposal, queried_log=queried_log))
    with recording(campaign.stream, campaign.team.stream) as log:
        campaign.refresh_from_db()
        if next_action(services.engine_state(campaign)) != asked:
            raise MovedOn(f"{campaign} moved on while you answered; nothing was handed in. wait_for_verdict says where "
                          "it stands.")
        facts = services.tell(campaign, document, log)
    row = campaign.rounds.get(number=asked.round)
    if proposal.trace is not None:
        services.round_trace_set(row=row, trace=proposal.trace)
    return _said(facts, asked)


def _said(facts: api.EngineFacts, asked: AskAgent) -> Reply:
    """What the engine did with it."""
    found = next((record for record in facts.rounds if record.number == asked.round), None)
    bounces = found.bounces if found is not None else ()
    if len(bounces) > len(asked.bounced):
        text = f"Sent back ({bounces[-1]['code']}): {bounces[-1]['text']}"
        if found is not None and found.state == "concluded":
            text += f" That was the third time: round {asked.round} is over."
        return Reply(text, is_error=True, data={"code": bounces[-1]["code"], "text": bounces[-1]["text"]})
    state = found.state if found is not None else facts.state
    if state == "evaluating":
        return Reply(f"Handed in as round {asked.round}; the site checks and measures it. wait_for_verdict says what "
                     "came of it.")
    return Reply(f"Handed in: round {asked.round} is {state}, the campaign is {facts.state}. wait_for_verdict says "
                 "what follows.")
