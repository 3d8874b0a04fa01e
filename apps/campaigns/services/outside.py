"""Proposals of an agent outside of this server: handed in by a person's or a token's client, judged like any other."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from apps.audit.services import audit_record
from apps.bridge import api
from apps.campaigns.models import Campaign, Round
from apps.campaigns.services.acting import check_allowed, influence_add
from apps.campaigns.services.engine import engine_state, tell
from apps.campaigns.services.projection import open_round
from apps.core.errors import Invalid, MovedOn
from apps.stream.services import recording
from apps.teams.models import User

SOURCE = "outside agent"


def proposal_from_outside(
    *, campaign: Campaign, person: User, proposal: dict[str, Any], queried_log: bool, round_number: int, attempt: int,
    makers: Iterable[User] = (), token_scope: bool = False, still_allowed: Callable[[], None] = lambda: None,
) -> api.EngineFacts:
    """Tell the engine a proposal for asking ``attempt`` (from 1) of round ``round_number``, all in one transaction.

    ``queried_log`` is the server's own evidence that the log was read in this asking. ``person``, and ``makers`` (who
    made the token, for instance), had a hand in the kernel: they started it, so none of them may approve it. No lease
    is needed: the campaign's stream is locked, and an answer to an earlier asking is refused. ``still_allowed`` raises
    where the right to hand in ended meanwhile; it is asked within the transaction.

    Raises:
        Refused: the person may not run campaigns in the team.
        Invalid: the campaign's agent is not an outside one, or the document is no proposal; nothing was counted.
        MovedOn: the campaign asks for something else by now, or for nothing; nothing was recorded.
    """
    check_allowed(person, campaign.team, token_scope)
    if campaign.agent_kind != "mcp":
        raise Invalid(f"The agent of {campaign} is {campaign.agent_kind}; only one whose agent is 'mcp' takes "
                      "proposals from outside.")
    with recording(campaign.stream, campaign.team.stream) as log:
        still_allowed()
        check_allowed(person, campaign.team, token_scope)
        campaign.refresh_from_db()
        state = engine_state(campaign)
        asked = api.outside_asked(state)
        if asked is None or (asked.round, asked.attempt) != (round_number, attempt):
            raise MovedOn(f"{campaign} does not wait for answer {attempt} of round {round_number} now; nothing was "
                          "handed in. See where it stands.")
        try:
            document = api.outside_result(state, proposal, queried_log=queried_log)
        except api.BridgeError as error:
            raise Invalid(error.text, key=error.key, code=error.code) from error
        open_round(campaign, round_number, log)
        for hand in {person, *makers}:
            influence_add(campaign=campaign, user=hand, source=SOURCE)
        facts = tell(campaign, document, log)
        trace = document["data"].get("proposal", {}).get("trace")
        if trace is not None:
            Round.objects.filter(campaign=campaign, number=round_number).update(trace=trace)
        audit_record(verb="campaign.proposed", subject=campaign, actor=person, team=campaign.team,
                     before=campaign.state, after=campaign.state, reason=f"round {round_number}, answer {attempt}",
                     digest=facts.rounds[-1].kernel or "" if facts.rounds else "")
    return facts
