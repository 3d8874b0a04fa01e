"""``manage.py create_person``: an account for somebody who will sign in with a password."""

from __future__ import annotations

import getpass
import sys
from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from apps.teams.models import User
from apps.teams.services import user_create


class Command(BaseCommand):
    """Asks for the password on a terminal, reads one line of standard input otherwise; it never stands in argv."""

    help = "Create an account. Roles are given on the team's page, or by create_team for its first maintainer."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Options."""
        parser.add_argument("username")
        parser.add_argument("--name", default="", help="the name shown to others")

    def handle(self, *, username: str, name: str, **options: Any) -> None:
        """Create the account, or say what is wrong and change nothing."""
        if User.objects.filter(username=username).exists():
            raise CommandError(f"There is an account '{username}' already.")
        password = getpass.getpass("Password: ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
        try:
            validate_password(password)
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error
        user_create(username=username, password=password, name=name)
        self.stdout.write(f"Created '{username}'.")
