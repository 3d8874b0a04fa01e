"""Rolling back in the browser: on a fresh proof alone, and what was typed is kept when it is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.db import transaction
from django.test import Client
from gate_world import World, make_world, medium

from apps.audit.models import AuditEntry
from apps.kernels.models import Promotion
from apps.reviews.models import Verification

PASSWORD = "a long password"
SignIn = Callable[..., Client]


@pytest.fixture(scope="module")
def shared_world(django_db_setup: None, django_db_blocker: object) -> Iterator[World]:
    """A slot with two promotions; the first can be restored."""
    with django_db_blocker.unblock(), transaction.atomic():  # type: ignore[attr-defined]
        world = make_world()
        world.promote(medium("1"), world.ben)
        world.new_campaign().promote(medium("2"), world.cem)
        yield world
        transaction.set_rollback(True)


def place(world: World) -> str:
    slot = world.campaign.slot
    return f"/operators/{slot.operator}/{slot.backend}/{slot.hardware}/{slot.workload}/"


def form(**more: str) -> dict[str, str]:
    first = Promotion.objects.order_by("id").first()
    assert first is not None
    return {"promotion": str(first.pk), "reason": "slower in <serving>", **more}


def ordered() -> bool:
    return Verification.objects.filter(kind="rollback").exists()


def test_a_fresh_reviewer_orders_it_without_a_password(world: World, sign_in: SignIn) -> None:
    client = sign_in(world.ben)
    assert 'name="password"' not in client.get(place(world)).content.decode()
    answer = client.post(f"{place(world)}rollback/", form())
    assert (answer.status_code, answer.url) == (303, place(world))
    assert "The rollback is ordered" in client.get(place(world)).content.decode()
    assert ordered() and len(AuditEntry.objects.get(verb="rollback.started").session_hash) == 64


def test_without_a_fresh_proof_it_asks_for_the_password_and_keeps_the_text(world: World, sign_in: SignIn) -> None:
    client = sign_in(world.ben, fresh=False)
    assert 'name="password"' in client.get(place(world)).content.decode()
    for more, said in (({}, "A rollback needs your password again"), ({"password": "no"}, "That is not your password")):
        answer = client.post(f"{place(world)}rollback/", form(**more))
        text = answer.content.decode()
        assert answer.status_code == 403 and "<b>Not ordered.</b>" in text and said in text
        assert "slower in &lt;serving&gt;</textarea>" in text and '<details class="more" open>' in text
        assert f'<option value="{form()["promotion"]}" selected>' in text
        assert "/docs/troubleshooting/reauthentication/" in text and not ordered()
    assert client.post(f"{place(world)}rollback/", form(password=PASSWORD)).status_code == 303
    assert ordered()


def test_a_rollback_cannot_be_had_by_guessing(world: World, sign_in: SignIn) -> None:
    client = sign_in(world.ben, fresh=False)
    codes = [client.post(f"{place(world)}rollback/", form(password=f"no {n}")).status_code for n in range(10)]
    assert codes == [403] * 9 + [429]
    answer = client.post(f"{place(world)}rollback/", form(password=PASSWORD))
    assert answer.status_code == 429 and "Too many wrong passwords were tried" in answer.content.decode()
    assert not ordered()


def test_who_may_not_is_told_so_whatever_the_proof(world: World, sign_in: SignIn) -> None:
    answer = sign_in(world.vic).post(f"{place(world)}rollback/", form())
    text = answer.content.decode()
    assert answer.status_code == 403 and "Not ordered." in text and "Roll back is off:" in text
    assert "needs the role reviewer" in text and not ordered()
