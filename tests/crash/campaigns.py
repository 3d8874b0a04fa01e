"""A person and campaigns of theirs, for tests of the runner."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from apps.bridge import api
from apps.campaigns.models import Campaign
from apps.campaigns.services import campaign_create, campaign_start
from apps.kernels.services import operators_sync
from apps.teams.models import Membership, RoleGrant, Team, User


def make_person(name: str = "emma", *roles: str) -> User:
    """A person with ``roles`` (engineer by default) in the team ``core``."""
    operators_sync()
    user = User.objects.create_user(name, password="a long password")
    team, _ = Team.objects.get_or_create(slug="core", defaults={"name": "Core"})
    membership = Membership.objects.create(team=team, user=user)
    for role in roles or ("engineer",):
        RoleGrant.objects.create(membership=membership, role=role, granted_at=timezone.now())
    return user


def begin_campaign(person: User, rounds: int = 3, name: str = "", agent: str = "playbook",
                   choice: dict[str, Any] | None = None, budget: dict[str, Any] | None = None, **stop: Any) -> Campaign:
    """A running numba rms_norm campaign. ``choice`` and ``budget`` change single values of the goal's."""
    goal = api.goal_default("rms_norm", "numba", api.hardware_here(), "llm")
    goal["budget"]["rounds"] = rounds
    goal["budget"] |= budget or {}
    goal["agent"] |= {"kind": agent, **(choice or {})}
    goal["stop"] |= stop
    campaign = campaign_create(team=Team.objects.get(slug="core"), person=person, goal=goal, name=name)
    return campaign_start(campaign=campaign, person=person)
