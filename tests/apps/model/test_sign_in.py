"""Signing in, one-click people, and proving anew who one is."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.http import HttpRequest
from django.test import RequestFactory, override_settings
from gate_world import World

from apps.core.errors import Refused
from apps.teams import sessions
from apps.teams.services import membership_add, user_create


def request_from(address: str = "127.0.0.1", **headers: str) -> HttpRequest:
    request = RequestFactory().post("/accounts/sign-in/", REMOTE_ADDR=address, **headers)
    request.session = SessionStore()
    return request


@pytest.fixture
def demo_person(world: World) -> Any:
    person = user_create(username="demo-dan", password=sessions.DEMO_PASSWORD, name="Dan", demo=True)
    membership_add(team=world.team, user=person, roles=["reviewer"], by=world.maintainer)
    return person


def test_password_signs_in_and_counts_as_a_proof(world: World) -> None:
    request = request_from()
    assert sessions.person_sign_in(request, username="ben", password="a long password") == world.ben
    assert sessions.is_fresh(sessions.reauthenticated_at(request))
    assert len(sessions.session_hash(request)) == 64


@pytest.mark.parametrize(("username", "password"), [("ben", "wrong"), ("nobody", "a long password"), ("agent", "x")])
def test_wrong_sign_in_says_the_same_for_everybody(world: World, username: str, password: str) -> None:
    with pytest.raises(Refused, match="do not match"):
        sessions.person_sign_in(request_from(), username=username, password=password)


def test_one_click_only_with_the_switch_on_loopback_without_a_proxy(demo_person: Any) -> None:
    assert sessions.demo_people(request_from()) == []
    with pytest.raises(Refused):
        sessions.demo_sign_in(request_from(), username="demo-dan")
    with override_settings(DEMO=True):
        people = sessions.demo_people(request_from())
        assert [(p.username, p.roles) for p in people] == [("demo-dan", ("reviewer",))]
        assert sessions.demo_people(request_from("192.0.2.7")) == []
        assert sessions.demo_people(request_from(HTTP_X_FORWARDED_FOR="127.0.0.1")) == []
        assert sessions.demo_sign_in(request_from("::1"), username="demo-dan") == demo_person
        with pytest.raises(Refused):
            sessions.demo_sign_in(request_from(), username="ben")
        with pytest.raises(Refused, match="only on the machine itself"):
            sessions.person_sign_in(request_from("192.0.2.7"), username="demo-dan", password=sessions.DEMO_PASSWORD)


def test_demo_password_opens_nothing_while_the_switch_is_off(demo_person: Any) -> None:
    with pytest.raises(Refused, match="while the demo switch is on"):
        sessions.person_sign_in(request_from(), username="demo-dan", password=sessions.DEMO_PASSWORD)


def test_reauthentication_needs_the_own_password(world: World) -> None:
    request = request_from()
    request.user = sessions.person_sign_in(request, username="ben", password="a long password")
    del request.session[sessions.PROVED_AT]
    with pytest.raises(Refused, match="not your password"):
        sessions.reauthenticate(request, password="wrong")
    assert sessions.reauthenticated_at(request) is None
    sessions.reauthenticate(request, password="a long password")
    assert sessions.is_fresh(sessions.reauthenticated_at(request))
