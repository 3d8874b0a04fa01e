"""What somebody with a browser and bad intentions tries: forged forms, other people's ids, hostile words."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest
from django.test import Client, override_settings
from django.urls import URLPattern, URLResolver, get_resolver
from gate_world import World, heavy
from test_every_page import addresses

from apps.campaigns.models import Campaign, Hypothesis, Job, Round
from apps.kernels.models import Slot
from apps.reviews.models import Decision, ReviewRequest
from apps.reviews.services import review_open, spot_check_ask, thread_open, veto_lift
from apps.teams.models import RoleGrant, Team, User
from apps.teams.services import membership_add, team_create, token_create, user_create

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{7*7}}`<b>x</b>`"
SignIn = Callable[..., Client]


class Elements(HTMLParser):
    """Elements that the hostile words would make if they were read as markup anywhere."""

    def __init__(self) -> None:
        super().__init__()
        self.hostile: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an event attribute, the image, or a script without an address."""
        names = dict(attrs)
        if any(name.startswith("on") for name in names) or names.get("src") == "x":
            self.hostile.append(f"{tag} {attrs}")


def posts() -> list[str]:
    """Every route of the site, with numbers and names that exist nowhere or are filled in by the tests."""
    found: list[str] = []

    def walk(patterns: list[Any], prefix: str) -> None:
        for one in patterns:
            if isinstance(one, URLResolver):
                walk(one.url_patterns, prefix + str(one.pattern))
            elif isinstance(one, URLPattern):
                found.append("/" + prefix + str(one.pattern))

    walk(get_resolver().url_patterns, "")
    return [route for route in found if not route.startswith(("/admin", "/static"))]


def filled(route: str, world: World, request_row: ReviewRequest) -> str:
    """The route with the ids of the team's own objects."""
    slot, kernel = world.campaign.slot, world.campaign.incumbent
    assert kernel is not None
    known: dict[str, Any] = {
        "slug": "kernels", "digest": kernel.short, "operator": slot.operator.name, "name": slot.operator.name,
        "backend": slot.backend, "hardware": slot.hardware.name, "workload": slot.workload, "number": 1, "form": "csv",
        "action": "stop", "code": "duplicate",
    }
    own = {"reviews/threads": request_row.threads.get().pk, "reviews/": request_row.pk, "campaigns/": world.campaign.pk,
           "verdicts": request_row.verdict_id, "jobs": str(Job.objects.filter(team=world.team)[0].pk)}
    pk = next((value for part, value in own.items() if part in route), 1)
    return re.sub(r"<(?:\w+:)?(\w+)>", lambda found: str(known.get(found[1], pk)), route)


def test_no_route_takes_a_post_without_the_csrf_token(world: World, request_row: ReviewRequest) -> None:
    """Every one of them, found in the route table itself; machines' addresses with a session likewise."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(world.maintainer)
    for route in posts():
        answer = client.post(filled(route, world, request_row), {"kind": "approve", "reason": "x"})
        assert answer.status_code in (403, 404, 405), (route, answer.status_code)


def test_no_get_changes_anything(world: World, request_row: ReviewRequest, sign_in: SignIn) -> None:
    before = (request_row.version, world.campaign.version, RoleGrant.objects.count(), Decision.objects.count())
    for person in (world.maintainer, world.ben):
        client = sign_in(person)
        for route in posts():
            client.get(filled(route, world, request_row), {"kind": "approve", "digest": request_row.kernel_id})
    request_row.refresh_from_db()
    world.campaign.refresh_from_db()
    after = (request_row.version, world.campaign.version, RoleGrant.objects.count(), Decision.objects.count())
    assert before == after


def test_a_stranger_gets_nothing_out_of_any_route(
    world: World, request_row: ReviewRequest, sign_in: SignIn
) -> None:
    """GET, POST, PUT, DELETE and htmx parts; boards are the one exception and show rows only."""
    client = sign_in(world.stranger)
    secrets = (request_row.kernel.short, "_extra_7", world.campaign.name, "Why?")
    for route in posts():
        address = filled(route, world, request_row)
        for verb in ("get", "post", "put", "delete"):
            answer = getattr(client, verb)(address, headers={"HX-Request": "true"})
            text = answer.content.decode() if not answer.streaming else ""
            assert answer.status_code < 500, (verb, address)
            if address.startswith("/kernels/") or "leaderboards" in address:
                assert "_extra_7" not in text and "Why?" not in text, (verb, address)
                continue
            assert not any(secret in text for secret in secrets), (verb, address, answer.status_code)
    world.campaign.refresh_from_db()
    assert (world.campaign.state, Decision.objects.count()) == ("running", 1)


def test_ids_of_another_team_in_a_form_of_ones_own(world: World, request_row: ReviewRequest, sign_in: SignIn) -> None:
    client = sign_in(world.stranger)
    token_create(team=world.team, user=world.ada, name="t", by=world.maintainer)
    token = world.team.tokens.get()
    client.post("/teams/others/tokens/revoke/", {"token": token.pk})
    token.refresh_from_db()
    assert token.revoked_at is None
    assert client.get(f"/campaigns/new/?from={world.campaign.pk}").status_code == 404
    assert client.get(f"/campaigns/new/?kernel={request_row.kernel.short}").status_code == 404
    compared = client.get(f"/campaigns/compare/?ids={world.campaign.pk}").content.decode()
    assert world.campaign.name not in compared
    client.get("/?team=kernels")
    assert client.session.get("team") != "kernels"
    job = Job.objects.filter(team=world.team)[0]
    Job.objects.filter(pk=job.pk).update(state="errored")
    assert client.post(f"/system/jobs/{job.pk}/requeue/").status_code == 404


def test_fields_that_the_form_does_not_have_change_nothing(world: World, sign_in: SignIn) -> None:
    extra = {"policy_version": "1", "slug": "mine", "boards_shared": "on", "is_superuser": "1", "kind": "person",
             "granted_at": "2000-01-01", "started_by": str(world.ben.pk), "team": str(world.team.pk)}
    client = sign_in(world.maintainer)
    client.post("/teams/kernels/policy/", {"approvals_light": 1, "approvals_medium": 2, "approvals_heavy": 2, **extra})
    client.post("/teams/kernels/roles/grant/", {"username": "vic", "role": "reviewer", "reason": "r", **extra})
    world.team.refresh_from_db()
    assert (world.team.policy_version, world.team.slug) == (2, "kernels")
    grant = RoleGrant.objects.latest("pk")
    assert grant.granted_at.year > 2000
    assert not User.objects.get(pk=world.vic.pk).is_superuser


def test_numbers_that_are_none_are_refused_and_break_nothing(
    world: World, request_row: ReviewRequest, sign_in: SignIn
) -> None:
    client = sign_in(world.ben)
    slot = world.campaign.slot
    place = f"/operators/{slot.operator}/{slot.backend}/{slot.hardware}/{slot.workload}/"
    manager = sign_in(world.maintainer)
    for text in ("²", "٣", "9" * 5000, "-1", "1.0", "0x1", "abc", ""):
        digest = request_row.kernel_id
        kind = {"kind": "approve", "digest": digest, "version": text}
        assert client.post(f"/reviews/{request_row.pk}/decide/", kind).status_code == 409, text
        assert client.post(f"/reviews/{request_row.pk}/comment/", {"text": "x", "line": text or "²"}).status_code == 303
        assert client.post(f"{place}rollback/", {"promotion": text, "reason": "r"}).status_code == 404
        assert client.get(f"/campaigns/compare/?ids={text}").status_code == 200
        assert client.get(f"/campaigns/new/?from={text}").status_code in (200, 404)
        assert manager.post("/teams/kernels/tokens/revoke/", {"token": text}).status_code == 303
        assert manager.post("/teams/kernels/policy/", {"approvals_light": text}).status_code == 303
    assert Decision.objects.count() == 1


def test_stale_version_digest_or_a_replay_is_refused(
    world: World, request_row: ReviewRequest, sign_in: SignIn
) -> None:
    client = sign_in(world.ben)
    form = {"kind": "approve", "digest": request_row.kernel_id, "version": request_row.version}
    other = request_row.base_id
    assert client.post(f"/reviews/{request_row.pk}/decide/", {**form, "digest": other}).status_code == 409
    assert client.post(f"/reviews/{request_row.pk}/decide/", {**form, "version": 99}).status_code == 409
    assert client.post(f"/reviews/{request_row.pk}/decide/", form).status_code == 303
    assert client.post(f"/reviews/{request_row.pk}/decide/", form).status_code == 409  # the same form once more
    assert Decision.objects.count() == 2


def test_a_proof_cannot_be_brought_along(world: World, request_row: ReviewRequest, sign_in: SignIn) -> None:
    """Another person's password, a field or header that claims freshness, a proof of the future."""
    client = sign_in(world.ben, fresh=False)
    form = {"kind": "approve", "digest": request_row.kernel_id, "version": request_row.version,
            "reauthenticated_at": "9999999999", "fresh": "1"}
    address = f"/reviews/{request_row.pk}/decide/"
    assert client.post(address, form, headers={"X-Reauthenticated-At": "9999999999"}).status_code == 403
    assert client.post(address, {**form, "password": "not my password"}).status_code == 403
    session = client.session
    session["reauthenticated_at"] = 9999999999
    session.save()
    assert client.post(address, form).status_code == 403
    assert Decision.objects.count() == 1
    assert client.post(address, {**form, "password": "a long password"}).status_code == 303


@pytest.mark.parametrize("to", [
    "https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:alert(1)", "http:evil.example",
    "https:///evil.example", "\thttps://evil.example", "http://testserver@evil.example/", "/%09/evil.example\r\nX: y",
])
def test_next_leads_nowhere_else(world: World, sign_in: SignIn, to: str) -> None:
    for client, address, form in (
        (Client(), "/accounts/sign-in/", {"username": "ben", "password": "a long password"}),
        (sign_in(world.ben), "/accounts/confirm/", {"password": "a long password"}),
    ):
        answer = client.post(address, {**form, "next": to})
        assert answer.status_code == 303
        assert answer["Location"].startswith("/") and "evil" not in answer["Location"].partition("?")[0].split("/")[1]
        assert "X" not in answer.headers


@pytest.mark.parametrize("headers", [
    {"X-Forwarded-For": "127.0.0.1"}, {"Forwarded": "for=127.0.0.1"}, {"X-Real-IP": "127.0.0.1"},
    {"Via": "1.1 proxy"}, {"X-Forwarded-Host": "localhost"},
])
def test_one_click_behind_a_proxy_is_closed(db: None, headers: dict[str, str]) -> None:
    user_create(username="demo-ada", password="demo-kernelopt", name="Ada", demo=True)
    with override_settings(DEMO=True):
        form = {"demo": "demo-ada"}
        assert Client(headers=headers).post("/accounts/sign-in/", form).status_code == 403
        assert Client(REMOTE_ADDR="10.1.2.3").post("/accounts/sign-in/", form).status_code == 403
        assert Client(REMOTE_ADDR="10.1.2.3", headers={"X-Forwarded-For": "127.0.0.1"}).post(
            "/accounts/sign-in/", form).status_code == 403
        assert Client(REMOTE_ADDR="").post("/accounts/sign-in/", form).status_code == 403
        assert Client(headers={"Host": "evil.example"}).post("/accounts/sign-in/", form).status_code == 400
        assert Client().post("/accounts/sign-in/", form).status_code == 303


def test_hostile_words_stay_words_on_every_page(world: World, request_row: ReviewRequest, sign_in: SignIn) -> None:
    """Names, hypotheses, summaries, comments, reasons and source, through every page that shows them."""
    for person in (world.ada, world.ben, world.cem, world.dia):
        User.objects.filter(pk=person.pk).update(first_name=HOSTILE[:150], last_name="")
    Team.objects.filter(pk=world.team.pk).update(name=HOSTILE[:100])
    Campaign.objects.filter(pk=world.campaign.pk).update(name=HOSTILE, cause=HOSTILE)
    Round.objects.filter(campaign=world.campaign).update(hypothesis=HOSTILE, change_summary=HOSTILE,
                                                         conclusion=HOSTILE, cause=HOSTILE, direction=HOSTILE)
    Hypothesis.objects.filter(campaign=world.campaign).update(text=HOSTILE, evidence=HOSTILE)
    Slot.objects.update(state_reason=HOSTILE)
    for row in Round.objects.filter(campaign=world.campaign):
        if row.entry:
            entry = {key: HOSTILE if isinstance(value, str) else value for key, value in row.entry.items()}
            Round.objects.filter(pk=row.pk).update(entry={**entry, "outcome": row.outcome})
    thread_open(request=request_row, person=world.ben, text=HOSTILE, kernel=request_row.kernel, line=3)
    spot_check_ask(campaign=world.campaign, round_number=4)
    world.decide(request_row, world.ben, "veto", comment=HOSTILE)
    source = heavy("9").replace(b"import numba", b"import numba  # " + HOSTILE.encode(), 1)
    verdict = world.verdict(source)
    again = review_open(campaign=world.campaign, kernel=verdict.kernel, verdict=verdict, person=world.ada,
                        because=HOSTILE)
    lifted = request_row.decisions.get(kind="veto").veto
    veto_lift(veto=lifted, person=world.ben, reason=HOSTILE)
    pages = dict(addresses_after(world, request_row))
    pages |= {"again": f"/reviews/{again.pk}/", "kernel9": f"/kernels/{verdict.kernel.short}/", "audit": "/audit/",
              "jump": "/jump/?q=" + HOSTILE.replace("#", "")}
    for person in (world.ben, world.maintainer):
        client = sign_in(person)
        for name, address in pages.items():
            answer = client.get(address, follow=True)
            assert answer.status_code == 200, (name, answer.status_code)
            if "html" not in answer["Content-Type"]:
                assert answer["X-Content-Type-Options"] == "nosniff"
                continue
            text = answer.content.decode()
            assert "<script>alert" not in text, name
            read = Elements()
            read.feed(text)
            assert read.hostile == [], name


def addresses_after(world: World, request_row: ReviewRequest) -> list[tuple[str, str]]:
    from unittest.mock import patch

    with patch.object(ReviewRequest.objects, "get", lambda: request_row):
        return list(addresses(world).items())


def test_names_of_accounts_are_not_told_to_who_may_not_manage(world: World, sign_in: SignIn) -> None:
    client = sign_in(world.vic)
    said = set()
    for name in ("sam", "nobody-at-all"):
        for address, form in (("members", {"roles": "viewer"}), ("roles/grant", {"role": "viewer"}),
                              ("roles/revoke", {"role": "viewer"})):
            answer = client.post(f"/teams/kernels/{address}/", {"username": name, **form}, follow=True)
            said |= {str(message).replace(name, "") for message in answer.context["messages"]}
        answer = client.post("/teams/kernels/tokens/", {"username": name, "name": "t"})
        said.add(answer.context["token_refusal"].text)
    assert len(said) == 1
    assert "Managing the team needs the role maintainer" in said.pop()


def test_a_member_of_two_teams_mixes_nothing(world: World, request_row: ReviewRequest, sign_in: SignIn) -> None:
    """A reviewer elsewhere is a viewer here."""
    other = team_create(name="Third", slug="third")
    membership_add(team=other, user=world.vic, roles=["reviewer", "maintainer", "engineer"], by=None)
    client = sign_in(world.vic)
    form = {"kind": "approve", "digest": request_row.kernel_id, "version": request_row.version, "team": "third"}
    assert client.post(f"/reviews/{request_row.pk}/decide/?team=third", form).status_code == 403
    client.post(f"/campaigns/{world.campaign.pk}/do/stop/?team=third", {"reason": "x"})
    nine = {"approvals_light": 9, "approvals_medium": 9, "approvals_heavy": 9}
    client.post("/teams/kernels/policy/?team=third", nine)
    world.campaign.refresh_from_db()
    world.team.refresh_from_db()
    assert (world.campaign.state, world.team.policy_version) == ("running", 1)
