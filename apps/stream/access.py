"""Who may follow a stream, asked at the door and again while it flows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from importlib import import_module
from typing import Any

from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, get_user_model
from django.utils.crypto import constant_time_compare

from apps.campaigns.models import Campaign
from apps.teams.models import Team
from apps.teams.policies import may_see


class Close(IntEnum):
    """Application close codes, sent after accept because a browser sees nothing of an earlier refusal."""

    SIGNED_OUT = 4401
    NOT_ALLOWED = 4403
    NOT_FOUND = 4404
    SILENT = 4408


SENTENCES = {
    Close.SIGNED_OUT: "You are not signed in, or your session ended. Sign in and open the page again.",
    Close.NOT_ALLOWED: "You may no longer follow this stream: you are not in its team. A maintainer can add you.",
    Close.NOT_FOUND: "There is no such stream here, or it belongs to another team.",
    Close.SILENT: "Nothing was acknowledged for a minute. Connect again with ?after= the last number you have.",
}


class Denied(Exception):
    """The stream may not, or no longer, be followed."""

    def __init__(self, code: Close) -> None:
        super().__init__(SENTENCES[code])
        self.code = code


@dataclass(frozen=True, slots=True)
class Target:
    """What a socket address names: a campaign by id or a team by slug."""

    kind: str  # "campaign" or "team"
    key: str


@dataclass(frozen=True, slots=True)
class Followed:
    """A stream that may be followed, and the person who follows it."""

    stream: str
    team_id: int
    user_id: int


def _session_user(session_key: str | None) -> Any:
    """The active user of a session read afresh, or ``None``: signed out, expired, password changed, deactivated."""
    if not session_key:
        return None
    session = import_module(settings.SESSION_ENGINE).SessionStore(session_key=session_key)
    user_id = session.get(SESSION_KEY)
    if user_id is None or session.get(BACKEND_SESSION_KEY) not in settings.AUTHENTICATION_BACKENDS:
        return None
    user = get_user_model().objects.filter(pk=user_id, is_active=True).first()
    if user is None or not constant_time_compare(session.get(HASH_SESSION_KEY, ""), user.get_session_auth_hash()):
        return None
    return user


def _team_of(target: Target) -> tuple[str, Team] | None:
    if target.kind == "team":
        team = Team.objects.filter(slug=target.key).first()
        return None if team is None else (team.stream, team)
    campaign = Campaign.objects.select_related("team").filter(pk=target.key).first()
    return None if campaign is None else (campaign.stream, campaign.team)


def admit(session_key: str | None, target: Target) -> Followed:
    """Whether the session's person may follow ``target`` now.

    Raises:
        Denied: 4401 without a valid session, 4404 without such an object, 4403 outside its team.
    """
    user = _session_user(session_key)
    if user is None:
        raise Denied(Close.SIGNED_OUT)
    found = _team_of(target)
    if found is None:
        raise Denied(Close.NOT_FOUND)
    stream, team = found
    if may_see(user, team) is not None:
        raise Denied(Close.NOT_ALLOWED)
    return Followed(stream, team.pk, user.pk)


admit_async = database_sync_to_async(admit)
