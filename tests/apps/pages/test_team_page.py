"""The team page: roles, policy and tokens go through the services."""

from __future__ import annotations

from collections.abc import Callable

from django.test import Client
from gate_world import World

from apps.teams.models import ApiToken
from apps.teams.selectors import roles_of, token_owner


def test_a_maintainer_grants_and_revokes(world: World, sign_in: Callable[..., Client]) -> None:
    client = sign_in(world.maintainer)
    client.post("/teams/kernels/roles/grant/", {"username": "vic", "role": "engineer"})
    assert roles_of(world.vic, world.team) == {"viewer", "engineer"}
    client.post("/teams/kernels/roles/revoke/", {"username": "vic", "role": "engineer"})
    assert roles_of(world.vic, world.team) == {"viewer"}
    client.post("/teams/kernels/members/", {"username": "sam", "roles": ["viewer"]})
    assert roles_of(world.stranger, world.team) == {"viewer"}
    text = client.post("/teams/kernels/roles/grant/", {"username": "vic", "role": "king"}, follow=True).content.decode()
    assert "is no role" in text


def test_others_read_why_and_change_nothing(world: World, sign_in: Callable[..., Client]) -> None:
    client = sign_in(world.ben)
    assert "needs the role maintainer" in client.get("/teams/kernels/").content.decode()
    client.post("/teams/kernels/roles/grant/", {"username": "ben", "role": "maintainer"})
    assert "maintainer" not in roles_of(world.ben, world.team)
    assert client.post("/teams/kernels/tokens/", {"name": "x", "username": "ben"}).status_code == 403
    assert not ApiToken.objects.exists()


def test_policy_may_only_rise(world: World, sign_in: Callable[..., Client]) -> None:
    client = sign_in(world.maintainer)
    given = {"approvals_light": "1", "approvals_medium": "2", "approvals_heavy": "2"}
    client.post("/teams/kernels/policy/", given)
    world.team.refresh_from_db()
    assert (world.team.approvals_medium, world.team.policy_version) == (2, 2)
    text = client.post("/teams/kernels/policy/", {**given, "approvals_heavy": "1"}, follow=True).content.decode()
    assert "at least 2" in text
    world.team.refresh_from_db()
    assert world.team.approvals_heavy == 2


def test_a_token_is_shown_once(world: World, sign_in: Callable[..., Client]) -> None:
    client = sign_in(world.maintainer)
    answer = client.post("/teams/kernels/tokens/", {"name": "nightly", "username": "vic"})
    assert answer.status_code == 201
    secret = answer.context["secret"]
    assert secret in answer.content.decode()
    token = token_owner(secret)
    assert token is not None and token.user == world.vic
    assert secret not in client.get("/teams/kernels/").content.decode()
    client.post("/teams/kernels/tokens/revoke/", {"token": token.pk})
    assert token_owner(secret) is None
