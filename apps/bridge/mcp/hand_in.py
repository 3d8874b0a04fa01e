"""Handing an outside agent's answer to the engine: once, for the asking it answers, and on behalf of known people."""

from __future__ import annotations

from apps.bridge import api
from apps.bridge.mcp.reply import Reply
from apps.bridge.mcp.rights import check_token
from apps.campaigns.models import Campaign
from apps.campaigns.services import proposal_from_outside
from apps.teams.selectors import token_maker
from apps.teams.tokens import Caller
from harness.domain.codec import to_document
from harness.domain.proposal import Proposal
from harness.engine.actions import AskAgent


def hand_in(caller: Caller, campaign: Campaign, asked: AskAgent, proposal: Proposal, *, queried_log: bool,
            said: str) -> Reply:
    """Tell the engine; ``said`` is what the tool says of it. Whoever the token stands for, and whoever made it, had a
    hand in the kernel and may not approve.

    Raises:
        Refused, Invalid, MovedOn: see the sentence; nothing was recorded.
    """
    assert caller.token is not None
    maker = token_maker(caller.token)
    facts = proposal_from_outside(
        campaign=campaign, person=caller.user, proposal=to_document(proposal), queried_log=queried_log,
        round_number=asked.round, attempt=len(asked.bounced) + 1, makers=[maker] if maker is not None else [],
        token_scope=caller.token.can_run_campaigns, still_allowed=lambda: check_token(caller))
    return _reply(facts, asked, said)


def _reply(facts: api.EngineFacts, asked: AskAgent, said: str) -> Reply:
    """What the engine did with it."""
    found = next((record for record in facts.rounds if record.number == asked.round), None)
    bounces = found.bounces if found is not None else ()
    if len(bounces) > len(asked.bounced):
        text = f"Sent back ({bounces[-1]['code']}): {bounces[-1]['text']}"
        if found is not None and found.state == "concluded":
            text += f" That was the third time: round {asked.round} is over."
        return Reply(text, is_error=True, data={"code": bounces[-1]["code"], "text": bounces[-1]["text"]})
    state = found.state if found is not None else ""
    if state == "evaluating":
        said = f"Handed in as round {asked.round}; the site checks and measures it."
    elif found is not None and state == "concluded":
        said = f"Handed in; round {asked.round} is over without a measurement ({found.outcome})."
    return Reply(f"{said} wait_for_verdict says what follows.")
