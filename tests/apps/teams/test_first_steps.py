"""The first account and the first team of an installation without the demo."""

from __future__ import annotations

import io
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from apps.core.errors import Refused
from apps.teams.models import Team, User
from apps.teams.selectors import is_person, roles_of
from apps.teams.services import role_grant

PASSWORD = "correct horse battery staple"


def _person(monkeypatch: pytest.MonkeyPatch, username: str, password: str = PASSWORD) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(password + "\n"))
    call_command("create_person", username, name="Ada Lovelace", stdout=io.StringIO())


def _sign_in(client: Any) -> None:
    answer = client.post("/accounts/sign-in/", {"username": "ada", "password": PASSWORD})
    assert (answer.status_code, "_auth_user_id" in client.session) == (303, True)


@pytest.mark.django_db
def test_a_person_and_their_team(monkeypatch: pytest.MonkeyPatch, client: Any) -> None:
    _person(monkeypatch, "ada")
    call_command("create_team", "Kernel Team", maintainer="ada", stdout=io.StringIO())
    ada, team = User.objects.get(username="ada"), Team.objects.get(slug="kernel-team")
    assert roles_of(ada, team) == {"maintainer"}
    _sign_in(client)
    assert client.get("/teams/kernel-team/").status_code == 200


@pytest.mark.django_db
@pytest.mark.parametrize(("password", "word"), [("short", "too short"), ("password123", "common")])
def test_a_weak_password_creates_nobody(monkeypatch: pytest.MonkeyPatch, password: str, word: str) -> None:
    with pytest.raises(CommandError, match=word):
        _person(monkeypatch, "ada", password)
    assert not User.objects.exists()


@pytest.mark.django_db
def test_a_team_needs_a_maintainer_who_exists_and_an_address_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CommandError, match="no active account 'ada'"):
        call_command("create_team", "Kernel Team", maintainer="ada")
    _person(monkeypatch, "ada")
    call_command("create_team", "Kernel Team", maintainer="ada", stdout=io.StringIO())
    with pytest.raises(CommandError, match="already"):
        call_command("create_team", "Kernel Team", maintainer="ada")
    with pytest.raises(CommandError, match="--slug"):
        call_command("create_team", "!!!", maintainer="ada")


@pytest.mark.django_db
def test_a_service_account_acts_through_tokens_alone(monkeypatch: pytest.MonkeyPatch, client: Any) -> None:
    _person(monkeypatch, "ada")
    call_command("create_team", "Kernel Team", maintainer="ada", stdout=io.StringIO())
    said = io.StringIO()
    call_command("create_person", "robot", service=True, stdout=said)  # asks for no password
    robot, ada, team = User.objects.get(username="robot"), User.objects.get(username="ada"), Team.objects.get()
    assert "service account 'robot'" in said.getvalue()
    assert robot.kind == "service" and not robot.has_usable_password() and not is_person(robot)
    for password in ("", PASSWORD):
        answer = client.post("/accounts/sign-in/", {"username": "robot", "password": password})
        assert "_auth_user_id" not in client.session and answer.status_code != 302

    _sign_in(client)
    for role in ("reviewer", "maintainer"):
        with pytest.raises(Refused, match="only persons decide"):
            role_grant(team=team, user=robot, role=role, by=ada)
    role_grant(team=team, user=robot, role="engineer", by=ada)
    made = client.post("/teams/kernel-team/tokens/", {"name": "agent", "username": "robot", "can_run_campaigns": "1"})
    assert made.status_code == 201
    client.logout()
    asked = client.get("/api/v1/campaigns", headers={"Authorization": f"Bearer {made.context['secret']}"})
    assert asked.status_code == 200
