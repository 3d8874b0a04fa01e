"""The tools as this server offers them: three of its own, and the agent's, each with the campaign it is about.

Every call asks anew whether the token still stands, whose it is and what it may: nothing is remembered for a caller.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from apps.bridge.mcp import bench
from apps.bridge.mcp.reply import Reply, refused
from apps.bridge.mcp.rights import check_token
from apps.bridge.mcp.standing import document, listed, mark_of, standing_of
from apps.campaigns import selectors
from apps.campaigns.models import Campaign
from apps.core.errors import AppError, Invalid, NotFound, Refused
from apps.teams.tokens import Caller
from harness.domain.errors import HarnessError

LONGEST_WAIT_S = 25.0
LISTED = 100
CAMPAIGN = {"type": "integer", "minimum": 1, "maximum": 2**63 - 1, "description": "The campaign's number, from "
            "list_campaigns."}


@dataclass(frozen=True, slots=True)
class Offer:
    """A tool as ``tools/list`` shows it. ``reads``: it changes nothing but the record of who read what."""

    name: str
    description: str
    schema: dict[str, Any]
    reads: bool


def _schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


OWN = {
    "list_campaigns": Offer(
        "list_campaigns", "The campaigns of the token's team that wait for an agent from outside (kind mcp), newest "
        "first, with their state. Start here.", _schema(), True),
    "read_brief": Offer(
        "read_brief", "What a language model of this server would be told now: goal, limits, prohibitions, the grant "
        "and what it allows, the candidate contract with an example, the hardware, closed directions, people's words "
        "and what is asked for. Read it at the beginning and whenever you are asked anew. It is no query of the log.",
        _schema(campaign=CAMPAIGN), True),
    "wait_for_verdict": Offer(
        "wait_for_verdict", "Where a campaign stands: whose turn it is, what you are asked for, what came of the last "
        "round, budgets, review requests. Waits up to `seconds` while the site measures and answers as soon as it is "
        f"your turn, a person is awaited or the campaign is over. At most {LONGEST_WAIT_S:g} seconds; ask again after "
        "that.", _schema(campaign=CAMPAIGN, seconds={"type": "number", "minimum": 0, "maximum": LONGEST_WAIT_S}), True),
}


@cache
def offered() -> Mapping[str, Offer]:
    """All tools by name."""
    theirs = {}
    for tool in bench.agents_tools().values():
        schema = json.loads(json.dumps(dict(tool.schema)))
        schema["properties"] = {"campaign": CAMPAIGN, **schema.get("properties", {})}
        schema["required"] = ["campaign", *schema.get("required", [])]
        theirs[tool.name] = Offer(tool.name, tool.description, schema, tool.name not in bench.ANSWERS)
    return {**OWN, **theirs}


def patience(name: str, arguments: Mapping[str, Any]) -> float:
    """How long a call may be looked at again, in seconds; 0 for all tools but one, and for wrong arguments."""
    if name != "wait_for_verdict" or not OWN[name].schema or _wrong(OWN[name], arguments):
        return 0.0
    return float(arguments["seconds"])


def call(caller: Caller, name: str, arguments: Mapping[str, Any]) -> Reply:
    """One call of a tool that is ``offered``. What the agent can mend comes back as an error in words."""
    try:
        check_token(caller)
        offer = offered()[name]
        if name in OWN:
            wrong = _wrong(offer, arguments)
            if wrong:
                raise Invalid(wrong)
            return _own(caller, name, arguments)
        number = arguments.get("campaign")
        if not Draft202012Validator(CAMPAIGN).is_valid(number):
            raise Invalid("`campaign` must be the number of a campaign, as list_campaigns gives it.")
        rest = {key: value for key, value in arguments.items() if key != "campaign"}
        return bench.call(caller, _campaign(caller, int(number)), name, rest)  # type: ignore[arg-type]
    except AppError as error:
        return refused(error.code, error.text)
    except HarnessError as error:
        return refused(error.code, error.text)


def moved(caller: Caller, reply: Reply) -> bool:
    """Whether asking again may bring another answer than ``reply``: something was told since, or the caller's rights
    are no longer what they were. Cheap: no results are folded."""
    mark = reply.mark
    if mark is None:
        return False
    try:
        check_token(caller)
        return mark_of(_campaign(caller, mark.campaign)) != mark
    except AppError:
        return True


def _wrong(offer: Offer, arguments: Mapping[str, Any]) -> str:
    """What is wrong with the arguments, in words; empty when nothing is."""
    error = next(iter(Draft202012Validator(offer.schema).iter_errors(dict(arguments))), None)
    if error is None:
        return ""
    where = ".".join(str(part) for part in error.absolute_path)
    return f"{offer.name} was not run: {where + ': ' if where else ''}{error.message[:300]}."


def _campaign(caller: Caller, number: int) -> Campaign:
    """A campaign of the token's own team that is driven from outside. An absent one and another team's are the same."""
    row = selectors.campaigns_for(caller.user).filter(pk=int(number), team__in=caller.teams).select_related(
        "team", "slot__operator", "slot__hardware", "slot__team", "start_kernel", "incumbent", "started_by").first()
    if row is None:
        raise NotFound("There is no such campaign for this token.")
    if row.agent_kind != bench.KIND:
        raise Refused(f"{row}'s agent is '{row.agent_kind}'. Only campaigns whose agent is '{bench.KIND}' are driven "
                      "from outside; start one with that agent.")
    return row


def _own(caller: Caller, name: str, arguments: Mapping[str, Any]) -> Reply:
    if name == "list_campaigns":
        return _list(caller)
    campaign = _campaign(caller, arguments["campaign"])
    return bench.brief(campaign) if name == "read_brief" else _standing(campaign)


def _list(caller: Caller) -> Reply:
    rows = selectors.campaigns_for(caller.user).filter(team__in=caller.teams, agent_kind=bench.KIND)[:LISTED]
    data = {"campaigns": [listed(row) for row in rows]}
    return Reply(json.dumps(data, indent=1), data=data)


def _standing(campaign: Campaign) -> Reply:
    mark = mark_of(campaign)  # before the look: what is told meanwhile is seen at the next one
    standing = standing_of(campaign)
    data = document(standing)
    return Reply(json.dumps(data, indent=1), data=data, mark=None if standing.settled else mark)
