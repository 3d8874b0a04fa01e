"""``manage.py create_person``: an account for somebody who signs in with a password, or for a program without one."""

from __future__ import annotations

import getpass
import sys
from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from apps.teams.choices import AccountKind
from apps.teams.models import User
from apps.teams.services import user_create


class Command(BaseCommand):
    """Asks for the password on a terminal, reads one line of standard input otherwise; it never stands in argv."""

    help = "Create an account. Roles are given on the team's page, or by create_team for its first maintainer."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Options."""
        parser.add_argument("username")
        parser.add_argument("--name", default="", help="the name shown to others")
        parser.add_argument("--service", action="store_true",
                            help="a service account for an agent or a script: it has no password, signs in nowhere, "
                                 "decides nothing, and acts through API tokens alone")

    def handle(self, *, username: str, name: str, service: bool = False, **options: Any) -> None:
        """Create the account, or say what is wrong and change nothing."""
        if User.objects.filter(username=username).exists():
            raise CommandError(f"There is an account '{username}' already.")
        if service:
            user_create(username=username, name=name, kind=AccountKind.SERVICE)
            self.stdout.write(f"Created the service account '{username}'. A maintainer gives it the role engineer and "
                              "an API token on the team's page.")
            return
        password = getpass.getpass("Password: ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
        try:
            validate_password(password)
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error
        user_create(username=username, password=password, name=name)
        self.stdout.write(f"Created '{username}'.")
