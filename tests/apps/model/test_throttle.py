"""Guessing passwords: what is counted, what is refused and for how long, and who is not kept out by it."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from ipaddress import ip_network
from typing import Any

import pytest
from axes.models import AccessAttempt, AccessLog
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import AnonymousUser
from django.contrib.sessions.backends.db import SessionStore
from django.core.management import call_command
from django.http import HttpRequest
from django.test import RequestFactory, override_settings
from gate_world import World

from apps.audit.models import AuditEntry
from apps.core.errors import AppError, Refused, TooManyTries
from apps.teams import sessions
from apps.teams.addresses import client_address
from apps.teams.services import user_create

RIGHT = "a long password"
HERE, THERE = "192.0.2.7", "198.51.100.4"


def request_from(address: str = HERE, **more: Any) -> HttpRequest:
    request = RequestFactory().post("/accounts/sign-in/", more.pop("data", {}), REMOTE_ADDR=address, **more)
    request.session, request.user = SessionStore(), AnonymousUser()
    return request


def sign_in(username: str = "ben", password: str = RIGHT, address: str = HERE, **more: Any) -> Any:
    return sessions.person_sign_in(request_from(address, **more), username=username, password=password)


def guess(times: int, username: str = "ben", address: str = HERE, **more: Any) -> list[str]:
    """Codes of the refusals of that many wrong passwords."""
    codes = []
    for number in range(times):
        with pytest.raises(AppError) as refused:
            sign_in(username, f"wrong {number}", address, **more)
        codes.append(refused.value.code)
    return codes


def pass_time(**time: float) -> None:
    """As if all tries had been made that much earlier."""
    for row in AccessAttempt.objects.all():
        AccessAttempt.objects.filter(pk=row.pk).update(attempt_time=row.attempt_time - timedelta(**time))


def test_ten_wrong_ones_refuse_the_right_one_for_a_quarter_of_an_hour(world: World) -> None:
    assert guess(10) == ["sign_in_failed"] * 9 + ["too_many_tries"]
    with pytest.raises(TooManyTries, match=r"next 15 minutes even the right one is refused here\. Nothing was "):
        sign_in()
    pass_time(minutes=14.5)
    with pytest.raises(TooManyTries, match="next 1 minute even"):
        sign_in()
    assert guess(3) == ["too_many_tries"] * 3  # and does not begin anew
    pass_time(minutes=1)
    assert sign_in() == world.ben


def test_success_begins_the_count_anew(world: World) -> None:
    for _ in range(3):
        assert "too_many_tries" not in guess(9)
        assert sign_in() == world.ben


def test_neither_another_address_nor_another_person_is_kept_out(world: World) -> None:
    guess(12)
    assert sign_in(address=THERE) == world.ben
    assert sign_in("cem") == world.cem
    with pytest.raises(TooManyTries):
        sign_in()


def test_a_new_browser_for_every_try_counts_on(world: World) -> None:
    codes = [code for number in range(10) for code in guess(1, HTTP_USER_AGENT=f"browser {number}")]
    assert codes[-1] == "too_many_tries"


@override_settings(SIGN_IN_TRIES_IN_ALL=24)
def test_one_address_may_not_try_one_password_on_everybody(world: World) -> None:
    codes = [code for number in range(8) for code in guess(3, f"name{number}")]
    assert codes == ["sign_in_failed"] * 23 + ["too_many_tries"]
    with pytest.raises(TooManyTries):
        sign_in()
    assert sign_in(address=THERE) == world.ben


@override_settings(SIGN_IN_TRIES_IN_ALL=24)
def test_many_addresses_may_not_share_the_guessing_of_one_name(world: World) -> None:
    codes = [code for number in range(8) for code in guess(3, address=f"203.0.113.{number}")]
    assert codes == ["sign_in_failed"] * 23 + ["too_many_tries"]
    with pytest.raises(TooManyTries):
        sign_in()
    assert sign_in("cem") == world.cem


@override_settings(SIGN_IN_TRIES_IN_ALL=24)
def test_an_account_of_ones_own_buys_no_new_guesses(world: World) -> None:
    guess(9)
    assert sign_in("cem") == world.cem
    assert guess(1) == ["too_many_tries"]
    assert sign_in("cem") == world.cem
    with pytest.raises(TooManyTries):
        sign_in()
    codes = [code for number in range(7) for code in guess(2, f"name{number}")]
    assert codes[-1] == "too_many_tries"  # the address itself, with the ten before


def test_names_of_nobody_are_refused_alike_and_kept_as_digests(world: World) -> None:
    slip = "my long secret password"  # typed into the wrong field
    assert guess(10, slip)[-1] == "too_many_tries"
    assert not AccessAttempt.objects.filter(username__icontains="secret").exists()
    assert AuditEntry.objects.filter(verb__startswith="sign_in").count() == 0
    assert guess(1, "n" * 151) == guess(1, "be\0n") == ["sign_in_failed"]
    assert AccessAttempt.objects.count() == 1


def test_confirming_counts_too_and_a_right_password_begins_anew(world: World) -> None:
    request = request_from()
    request.user = sessions.person_sign_in(request, username="ben", password=RIGHT)
    proved = sessions.reauthenticated_at(request)

    def confirm(password: str) -> None:
        again = request_from()
        again.session, again.user = request.session, request.user
        sessions.reauthenticate(again, password=password)

    for _ in range(9):
        with pytest.raises(Refused, match="not your password"):
            confirm("wrong")
    confirm(RIGHT)
    for _ in range(5):
        with pytest.raises(Refused, match="not your password"):
            confirm("wrong")
    assert guess(5)[-1] == "too_many_tries"
    proved = sessions.reauthenticated_at(request)
    with pytest.raises(TooManyTries, match="Nothing was recorded; try again then"):
        confirm(RIGHT)
    assert sessions.reauthenticated_at(request) == proved
    entry = AuditEntry.objects.filter(verb="sign_in.failed", reason__contains="to confirm, in a session").first()
    assert entry is not None and entry.session_hash == sessions.session_hash(request)


def test_tries_and_refusal_are_in_the_trail_and_no_password_is_anywhere(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    typed = {"username": "ben", "password": "hunter2 hunter2", "comment": "not for the table"}
    for _ in range(12):
        with pytest.raises(AppError):
            sign_in(password="hunter2 hunter2", data=typed)
    rows = AuditEntry.objects.filter(object_type="teams.user", object_id=str(world.ben.pk)).order_by("id")
    assert [row.verb for row in rows] == ["sign_in.failed"] * 10 + ["sign_in.refused"]
    assert all(HERE in row.reason and row.actor is None for row in rows)
    assert "refused for 15 minutes" in rows.last().reason  # type: ignore[union-attr]
    kept = [str(vars(row)) for row in (*AccessAttempt.objects.all(), *AuditEntry.objects.all())]
    assert AccessAttempt.objects.get().failures_since_start == 10
    assert not [text for text in (*kept, caplog.text) if "hunter2" in text or "not for the table" in text]
    assert not AccessLog.objects.exists()


def test_an_admin_of_the_machine_lifts_it(world: World) -> None:
    guess(10)
    guess(10, "cem")
    call_command("axes_reset_username", "ben", stdout=StringIO())
    assert sign_in() == world.ben
    with pytest.raises(TooManyTries):
        sign_in("cem")
    call_command("axes_reset", stdout=StringIO())
    assert sign_in("cem") == world.cem


def test_a_right_guess_among_many_at_once_comes_too_late(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """All passed the first look before any was counted; the others are counted while this one is checked."""
    honest = ModelBackend.authenticate

    def slow(self: ModelBackend, request: Any, username: Any = None, password: Any = None, **more: Any) -> Any:
        user = honest(self, request, username, password, **more)
        if user is not None:
            guess(10)
        return user

    monkeypatch.setattr(ModelBackend, "authenticate", slow)
    request = request_from()
    with pytest.raises(TooManyTries):
        sessions.person_sign_in(request, username="ben", password=RIGHT)
    assert "_auth_user_id" not in request.session


@pytest.mark.django_db
@override_settings(DEMO=True)
def test_demo_people_are_never_kept_out_on_the_machine_itself() -> None:
    dan = user_create(username="demo-dan", password=sessions.DEMO_PASSWORD, name="Dan", demo=True)
    assert set(guess(30, "demo-dan", "127.0.0.1")) == {"sign_in_failed"}
    assert sessions.demo_sign_in(request_from("127.0.0.1"), username="demo-dan") == dan
    assert sign_in("demo-dan", sessions.DEMO_PASSWORD, "::1") == dan
    assert not AccessAttempt.objects.exists() and not AuditEntry.objects.filter(verb__startswith="sign_in").exists()
    assert guess(10, "demo-dan")[-1] == "too_many_tries"  # from elsewhere they are counted as anybody


@pytest.mark.parametrize(("peer", "forwarded", "counted"), [
    ("192.0.2.7", "", "192.0.2.7"),
    ("192.0.2.7", "203.0.113.9", "192.0.2.7"),  # no proxy of ours: whoever writes headers cannot choose an address
    ("127.0.0.1", "203.0.113.9", "203.0.113.9"),
    ("127.0.0.1", "1.2.3.4, 203.0.113.9", "203.0.113.9"),  # the client wrote the first one itself
    ("127.0.0.1", "203.0.113.9, 10.1.2.3", "203.0.113.9"),  # two proxies of ours
    ("127.0.0.1", "203.0.113.9, unknown", "127.0.0.1"),
    ("127.0.0.1", "", "127.0.0.1"),
    ("::ffff:192.0.2.7", "", "192.0.2.7"),
    ("2001:db8:1:2:3:4:5:6", "", "2001:db8:1:2::"),
    ("::1", "", "::1"),
    ("", "203.0.113.9", "0.0.0.0"),
])
def test_the_address_that_counts(peer: str, forwarded: str, counted: str | None) -> None:
    more = {"HTTP_X_FORWARDED_FOR": forwarded} if forwarded else {}
    with override_settings(PROXIES=[ip_network("127.0.0.1"), ip_network("10.0.0.0/8")]):
        assert client_address(RequestFactory().get("/", REMOTE_ADDR=peer, **more)) == counted


def test_no_try_is_kept_without_a_name_or_an_address(world: World) -> None:
    """The table takes equal rows where one of the two is absent, and the library counts none of them further."""
    assert guess(12, "") == ["sign_in_failed"] * 12
    assert guess(10, address="")[-1] == "too_many_tries"
    assert [(row.username, row.failures_since_start) for row in AccessAttempt.objects.all()] == [("ben", 10)]
    assert not AccessAttempt.objects.filter(ip_address=None).exists()
    with pytest.raises(TooManyTries):
        sign_in(address="")


def test_people_behind_a_proxy_are_told_apart(world: World) -> None:
    with override_settings(PROXIES=[ip_network("127.0.0.1")]):
        assert guess(10, address="127.0.0.1", HTTP_X_FORWARDED_FOR=HERE)[-1] == "too_many_tries"
        assert sign_in(address="127.0.0.1", HTTP_X_FORWARDED_FOR=THERE) == world.ben
