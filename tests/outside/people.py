"""Seeds a site under test and makes tokens for agents. Run with that site's environment; prints the secrets."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import django


def tokens() -> dict[str, str]:
    """A service account's token with the scope to run campaigns, and the stranger's."""
    from apps.teams.models import Team, User
    from apps.teams.services import membership_add, token_create, user_create

    mia, sten = User.objects.get(username="mia"), User.objects.get(username="sten")
    core, elsewhere = Team.objects.get(slug="core"), Team.objects.get(slug="elsewhere")
    robot = user_create(username="robot", password="", name="Robot", kind="service")
    membership_add(team=core, user=robot, roles=["engineer"], by=mia)
    found = {}
    for name, team, user, by in (("agent", core, robot, mia), ("stranger", elsewhere, sten, sten)):
        _, found[name] = token_create(team=team, user=user, name=name, by=by, can_run_campaigns=True)
    return found


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kernelopt_site.settings.base")
    sys.path.insert(0, str(Path.cwd()))
    django.setup()
    sys.stdout.write(json.dumps(tokens()))
