"""The demo's team and people, listed on the sign-in page for one click; only with the demo switch, on loopback."""

from __future__ import annotations

from apps.bridge.runner.demo.names import TEAM
from apps.teams.models import Team, User
from apps.teams.services import role_grant, team_create, user_create
from apps.teams.sessions import DEMO_PASSWORD

PEOPLE = (
    ("emma", "Emma Engineer", ("engineer",)),
    ("erik", "Erik Engineer", ("engineer",)),
    ("rosa", "Rosa Reviewer", ("reviewer",)),
    ("ravi", "Ravi Reviewer", ("reviewer",)),
    ("rita", "Rita Reviewer", ("reviewer",)),
    ("mira", "Mira Maintainer", ("maintainer",)),
    ("vera", "Vera Viewer", ("viewer",)),
)


def seed_people() -> Team:
    """The team and whoever is missing from it; roles that somebody changed since stay changed."""
    team = Team.objects.filter(slug=TEAM).first() or team_create(name="Inference Core", slug=TEAM)
    for username, name, roles in PEOPLE:
        if User.objects.filter(username=username).exists():
            continue
        person = user_create(username=username, password=DEMO_PASSWORD, name=name, demo=True)
        for role in roles:
            role_grant(team=team, user=person, role=role, by=None, reason="demo")
    return team


def demo_team() -> Team | None:
    """The demo's team, if it was seeded."""
    return Team.objects.filter(slug=TEAM).first()
