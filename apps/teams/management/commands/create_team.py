"""``manage.py create_team``: a team and its first maintainer, who gives all further roles in the browser."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils.text import slugify

from apps.teams.models import Team, User
from apps.teams.services import team_create


class Command(BaseCommand):
    """A maintainer is no reviewer by that: the roles of a person are given one by one and audited."""

    help = "Create a team with its first maintainer."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Options."""
        parser.add_argument("name")
        parser.add_argument("--maintainer", required=True, metavar="USERNAME")
        parser.add_argument("--slug", default="", help="the team's name in addresses; made from the name if absent")

    def handle(self, *, name: str, maintainer: str, slug: str, **options: Any) -> None:
        """Create the team, or say what is wrong and change nothing."""
        slug = slug or slugify(name)
        if not slug:
            raise CommandError(f"'{name}' gives no address; name one with --slug.")
        if Team.objects.filter(slug=slug).exists():
            raise CommandError(f"There is a team '{slug}' already.")
        founder = User.objects.filter(username=maintainer, is_active=True).first()
        if founder is None:
            raise CommandError(f"There is no active account '{maintainer}'. Create it with: "
                               f"python manage.py create_person {maintainer}")
        team_create(name=name, slug=slug, founder=founder)
        self.stdout.write(f"Created team '{name}'. {maintainer} adds people and roles on /teams/{slug}/.")
