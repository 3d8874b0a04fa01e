"""Seeds a team into the database of a site under test. Run with that site's environment."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import django

PASSWORD = "a long enough password"
TEAM = "core"
PEOPLE = {"emma": ["engineer"], "rosa": ["reviewer"], "ravi": ["reviewer"], "mia": ["maintainer"], "vera": ["viewer"]}


def seed() -> None:
    """One team, an engineer, two reviewers, a maintainer, a viewer, and a stranger in another team."""
    from django.core.management import call_command

    from apps.teams.services import membership_add, team_create, user_create

    call_command("migrate", interactive=False, verbosity=0)
    mia = user_create(username="mia", password=PASSWORD, name="Mia")
    team = team_create(name="Core", slug=TEAM, founder=mia)
    for username, roles in PEOPLE.items():
        if username != "mia":
            user = user_create(username=username, password=PASSWORD, name=username.capitalize())
            membership_add(team=team, user=user, roles=roles, by=mia)
    stranger = user_create(username="sten", password=PASSWORD, name="Sten")
    team_create(name="Elsewhere", slug="elsewhere", founder=stranger)


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kernelopt_site.settings.base")
    sys.path.insert(0, str(Path.cwd()))
    django.setup()
    seed()
