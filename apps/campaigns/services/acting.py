"""What every deed of a person on a campaign has in common: the right to it, one transaction, the trail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apps.audit.services import audit_record
from apps.bridge import api
from apps.campaigns.choices import CAMPAIGN_ENDED, CampaignState
from apps.campaigns.jobs.services import jobs_cancel_of
from apps.campaigns.models import Campaign, Influence
from apps.campaigns.services.engine import tell
from apps.campaigns.turns.services import turns_close
from apps.core.errors import Invalid, Refused
from apps.stream.services import Log, recording
from apps.teams import policies
from apps.teams.models import Team, User

Also = Callable[[Campaign, Log], None]


def check_allowed(person: User, team: Team, token_scope: bool = False) -> None:
    """Raises:
    Refused: the person may not run campaigns in the team.
    """
    why = policies.may_run_campaigns(person, team, token_scope=token_scope)
    if why:
        raise Refused(why)


def act(campaign: Campaign, person: User, kind: str, token_scope: bool = False, also: Also | None = None, /,
        **data: Any) -> Campaign:
    """Tell the engine what a person did, and write it into the trail, in one transaction; ``also`` runs in it."""
    check_allowed(person, campaign.team, token_scope)
    try:
        document = api.engine_result(kind, **data)
    except api.BridgeError as error:
        raise Invalid(error.text, key=error.key, code=error.code) from error
    with recording(campaign.stream, campaign.team.stream) as log:
        before = campaign.state
        if before == CampaignState.DRAFT:
            raise Invalid("This campaign is a draft: start it first.")
        tell(campaign, document, log)
        if also is not None:
            also(campaign, log)
        if campaign.state in CAMPAIGN_ENDED:
            jobs_cancel_of(campaign)
            turns_close(campaign, log, "The campaign ended while this answer was under way.")
        audit_record(
            verb=f"campaign.{kind.lower()}", subject=campaign, actor=person, team=campaign.team, before=before,
            after=campaign.state, reason=_reason(data),
        )
    return campaign


def _reason(data: dict[str, Any]) -> str:
    said = data.get("reason", data.get("choice", ""))
    if said or "kind" not in data:
        return str(said)
    words = (data["kind"], *(data.get(name, "") for name in ("direction", "endpoint", "model", "effort", "text")))
    return " ".join(str(word) for word in words if word)


def influence_add(*, campaign: Campaign, user: User, source: str) -> None:
    """Note that a person's words reach the agent from now on."""
    Influence.objects.get_or_create(campaign=campaign, user=user, source=source)
