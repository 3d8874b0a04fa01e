"""What a person sees after too many wrong passwords: at the sign-in, where a decision is confirmed, in the admin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.test import AsyncClient, Client, override_settings
from gate_world import World

from apps.reviews.models import ReviewRequest
from apps.teams.models import User

PASSWORD = "a long password"
SAID = "Too many wrong passwords were tried. For the next 15 minutes even the right one is refused here."
SignIn = Callable[..., Client]

pytestmark = pytest.mark.django_db


def tries(client: Client, address: str, **fields: str) -> Any:
    """Ten wrong passwords, then the right one; the last answer."""
    name = "old_password" if "new_password1" in fields else "password"
    for number in range(10):
        assert client.post(address, {**fields, name: f"wrong {number}"}).status_code in (200, 403, 429)
    return client.post(address, {**fields, name: PASSWORD})


def test_the_sign_in_page_says_it_at_the_field_and_keeps_the_name(world: World) -> None:
    client = Client()
    answer = tries(client, "/accounts/sign-in/", username="ben")
    text = answer.content.decode()
    assert answer.status_code == 429 and "_auth_user_id" not in client.session
    assert 'id="refusal"' in text and f"{SAID} Nothing was changed; try again then." in text
    assert 'value="ben"' in text and text.count('aria-describedby="refusal"') == 2
    assert text.count(" autofocus") == 1  # a phone shows the people of the demo first
    assert "/docs/troubleshooting/too_many_tries/" in text
    assert client.get("/accounts/sign-in/").status_code == 200
    assert client.get("/docs/troubleshooting/too_many_tries/").status_code == 200
    assert Client(REMOTE_ADDR="192.0.2.9").post(
        "/accounts/sign-in/", {"username": "ben", "password": PASSWORD}).status_code == 303


def test_the_server_that_serves_the_site_shows_the_same_page(world: World) -> None:
    """Under ASGI the library's middleware runs another way, in which it does not know the page it would replace."""
    async def asked() -> Any:
        client = AsyncClient()
        for _ in range(11):
            answer = await client.post("/accounts/sign-in/", {"username": "ben", "password": "no"})
        return answer

    answer = async_to_sync(asked)()
    assert answer.status_code == 429 and f"{SAID} Nothing was changed" in answer.content.decode()


def test_a_decision_cannot_be_had_by_guessing_and_its_text_is_kept(
    world: World, request_row: ReviewRequest, sign_in: SignIn
) -> None:
    client = sign_in(world.ben, fresh=False)
    answer = tries(client, f"/reviews/{request_row.pk}/decide/", kind="reject", comment="the tail is wrong",
                   digest=request_row.kernel_id, version=str(request_row.version))
    text = answer.content.decode()
    assert answer.status_code == 429 and SAID in text and "the tail is wrong" in text
    assert not request_row.decisions.filter(user=world.ben).exists()
    assert client.get(f"/reviews/{request_row.pk}/").status_code == 200  # the session goes on, it only proves nothing
    confirm = client.post("/accounts/confirm/", {"password": PASSWORD})
    assert confirm.status_code == 429 and SAID in confirm.content.decode()


def test_the_admin_takes_passwords_by_the_same_door(world: World, sign_in: SignIn) -> None:
    User.objects.filter(pk=world.admin.pk).update(is_staff=True)
    client = Client()
    answer = client.get("/admin/kernels/kernel/", follow=True)
    assert answer.redirect_chain[-1] == ("/accounts/sign-in/?next=%2Fadmin%2Fkernels%2Fkernel%2F", 302)
    assert client.post("/admin/login/", {"username": "ben", "password": PASSWORD}).status_code == 405
    answer = client.post("/accounts/sign-in/", {"username": world.admin.username, "password": PASSWORD,
                                                "next": "/admin/kernels/kernel/"})
    assert (answer.status_code, answer.url) == (303, "/admin/kernels/kernel/")
    assert client.get("/admin/kernels/kernel/").status_code == 200
    assert client.get("/admin/login/").status_code == 302
    other = sign_in(world.ben).get("/admin/", follow=True)  # no admin: told so, not sent round in circles
    assert other.status_code == 403 and "your account is none" in other.content.decode()


def test_a_session_left_open_does_not_give_the_password_away_in_the_admin(world: World, sign_in: SignIn) -> None:
    User.objects.filter(pk=world.admin.pk).update(is_staff=True)
    client, new = sign_in(world.admin), "another long password"
    form = {"new_password1": new, "new_password2": new}
    wrong = client.post("/admin/password_change/", {**form, "old_password": "no"})
    assert wrong.status_code == 200 and "incorrect" in wrong.content.decode()
    answer = tries(client, "/admin/password_change/", **form)
    assert answer.status_code == 429 and SAID in answer.content.decode()
    world.admin.refresh_from_db()
    assert world.admin.check_password(PASSWORD)
    other = Client(REMOTE_ADDR="192.0.2.9")
    other.force_login(world.admin)
    done = other.post("/admin/password_change/", {**form, "old_password": PASSWORD})
    world.admin.refresh_from_db()
    assert done.status_code == 302 and world.admin.check_password(new)
    assert Client().post("/admin/password_change/", form).url.startswith("/admin/login/")


@override_settings(DEMO=True)
def test_one_click_works_whatever_was_typed_before(world: World) -> None:
    User.objects.filter(pk=world.ben.pk).update(demo=True)
    world.ben.set_password("demo-kernelopt")
    world.ben.demo = True
    world.ben.save()
    client = Client()
    for _ in range(12):
        assert client.post("/accounts/sign-in/", {"username": "ben", "password": "no"}).status_code == 403
    assert client.post("/accounts/sign-in/", {"demo": "ben"}).status_code == 303
