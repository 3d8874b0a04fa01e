"""Every address answers properly per role, and nothing on any page needs an inline script or style."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.test import Client
from gate_world import World, medium

from apps.kernels.models import Verdict
from apps.reviews.models import ReviewRequest

INLINE = (
    re.compile(r"<script(?![^>]*\bsrc=)(?![^>]*application/json)", re.I),
    re.compile(r"<style\b", re.I),
    re.compile(r"<[^>]+\sstyle=", re.I),
    re.compile(r"<[^>]+\son[a-z]+=", re.I),
)


def addresses(world: World) -> dict[str, str]:
    """One of each page; those of the team's objects marked by a leading star."""
    campaign, slot = world.campaign, world.campaign.slot
    kernel, verdict = campaign.incumbent, campaign.incumbent_verdict
    refused = Verdict.objects.get(outcome="incorrect_numeric")
    assert kernel is not None and verdict is not None
    place = f"{slot.operator}/{slot.backend}/{slot.hardware}/{slot.workload}/"
    return {
        "home": "/",
        "campaigns": "/campaigns/?state=running&mine=1",
        "new": "/campaigns/new/?preset=research",
        "compare": f"/campaigns/compare/?ids={campaign.pk}",
        "reviews": "/reviews/",
        "operators": "/operators/",
        "operator": f"/operators/{slot.operator}/",
        "boards": "/leaderboards/",
        "board": f"/leaderboards/{slot.operator}/",
        "system": "/system/",
        "hardware": "/hardware/",
        "device": f"/hardware/{slot.hardware}/",
        "entries": "/docs/troubleshooting/",
        "entry": "/docs/troubleshooting/duplicate/",
        "*campaign": f"/campaigns/{campaign.pk}/?axis=log&only=accepted&events=all",
        "*round": f"/campaigns/{campaign.pk}/rounds/3/",
        "*round0": f"/campaigns/{campaign.pk}/rounds/0/",
        "*kernel": f"/kernels/{kernel.short}/",
        "*source": f"/kernels/{kernel.short}/source.py",
        "*verdict": f"/verdicts/{verdict.pk}/",
        "*refused": f"/verdicts/{refused.pk}/",
        "*json": f"/verdicts/{verdict.pk}/verdict.json",
        "*review": f"/reviews/{ReviewRequest.objects.get().pk}/",
        "*slot": f"/operators/{place}",
        "*team": "/teams/kernels/",
        "*csv": f"/campaigns/{campaign.pk}/log.csv",
        "*log": f"/campaigns/{campaign.pk}/log.json",
        "*fork": f"/campaigns/new/?from={campaign.pk}",
    }


def test_members_see_every_page_without_inline_code(world: World, sign_in: Callable[..., Client]) -> None:
    for person in (world.vic, world.ben, world.admin):
        client = sign_in(person)
        for name, address in addresses(world).items():
            answer = client.get(address)
            assert answer.status_code == 200, (person, name, answer.status_code)
            if "html" in answer["Content-Type"]:
                text = answer.content.decode()
                for pattern in INLINE:
                    found = pattern.search(text)
                    assert found is None, (name, text[found.start() - 80 : found.end() + 80])
                assert "style-src 'self'" in answer["Content-Security-Policy"]
                assert "unsafe" not in answer["Content-Security-Policy"]


def test_strangers_get_404_for_objects_of_other_teams(world: World, sign_in: Callable[..., Client]) -> None:
    client = sign_in(world.stranger)
    for name, address in addresses(world).items():
        assert client.get(address).status_code == (404 if name.startswith("*") else 200), name


def test_strangers_can_change_nothing(world: World, request_row: ReviewRequest, sign_in: Callable[..., Client]) -> None:
    client = sign_in(world.stranger)
    for address in (
        f"/campaigns/{world.campaign.pk}/do/stop/",
        f"/reviews/{request_row.pk}/decide/",
        f"/reviews/{request_row.pk}/comment/",
        f"/reviews/{request_row.pk}/withdraw/",
        "/teams/kernels/policy/",
        f"/reviews/threads/{request_row.threads.get().pk}/resolve/",
    ):
        assert client.post(address, {"kind": "approve", "reason": "x"}).status_code == 404, address
    world.campaign.refresh_from_db()
    assert world.campaign.state == "running"


def test_signed_out_people_are_sent_to_sign_in(world: World, sign_in: Callable[..., Client]) -> None:
    client = sign_in(None)
    for name, address in addresses(world).items():
        answer = client.get(address)
        if name in ("entries", "entry"):
            assert answer.status_code == 200
        else:
            assert answer.status_code == 302, name
            assert answer["Location"].startswith("/accounts/sign-in/")


def test_public_boards_show_rows_and_no_source(world: World, sign_in: Callable[..., Client], settings: object) -> None:
    settings.PUBLIC_BOARDS = True  # type: ignore[attr-defined]
    client = sign_in(None)
    answer = client.get("/leaderboards/rms_norm/")
    assert answer.status_code == 200
    text = answer.content.decode()
    assert "Kernels" in text
    assert f"/campaigns/{world.campaign.pk}/" not in text and "/verdicts/" not in text and "/kernels/" not in text


def test_parts_of_live_pages_are_regions_only(world: World, sign_in: Callable[..., Client]) -> None:
    client = sign_in(world.ada)
    for part in ("top", "ideas", "log"):
        answer = client.get(f"/campaigns/{world.campaign.pk}/?part={part}")
        assert answer.status_code == 200
        assert b"<html" not in answer.content and f'id="{part}"'.encode() in answer.content
    assert client.get(f"/campaigns/{world.campaign.pk}/?part=nothing").status_code == 404


def test_the_trail_is_for_reviewers_and_maintainers(world: World, sign_in: Callable[..., Client]) -> None:
    assert sign_in(world.ben).get("/audit/?verb=review.").status_code == 200
    answer = sign_in(world.vic).get("/audit/")
    assert answer.status_code == 403
    assert b"needs the role" in answer.content


def test_machines_ask_without_signing_in(world: World, sign_in: Callable[..., Client]) -> None:
    client = sign_in(None)
    assert client.get("/health/").json() == {"status": "ok"}
    assert client.get("/ready/").json()["status"] == "ready"
    text = client.get("/metrics").content.decode()
    assert "kernelopt_campaigns_running 1" in text and "kernelopt_reviews_open 1" in text


def test_the_jump_box_finds_things(world: World, sign_in: Callable[..., Client]) -> None:
    client = sign_in(world.vic)
    kernel = world.campaign.incumbent
    assert kernel is not None
    for asked, to in (
        (f"C-{world.campaign.pk}", f"/campaigns/{world.campaign.pk}/"),
        ("r-1", "/reviews/1/"),
        ("V-2", "/verdicts/2/"),
        (kernel.digest, f"/kernels/{kernel.short}/"),
        ("rms norm", "/operators/rms_norm/"),
        (f"c{world.campaign.pk} r3", f"/campaigns/{world.campaign.pk}/rounds/3/"),
        ("nothing of the kind", "/"),
    ):
        assert client.get("/jump/", {"q": asked})["Location"] == to


@pytest.mark.parametrize("address", ["/campaigns/", "/", "/reviews/"])
def test_lists_need_no_more_queries_with_more_rows(
    world: World, sign_in: Callable[..., Client], address: str, django_assert_max_num_queries: Callable[..., object]
) -> None:
    client = sign_in(world.vic)
    client.get(address)
    with django_assert_max_num_queries(70) as few:  # type: ignore[attr-defined]
        client.get(address)
    for _ in range(4):
        world.new_campaign()
    with django_assert_max_num_queries(len(few) + 4):  # type: ignore[attr-defined]
        client.get(address)


def test_a_promoted_request_leads_to_its_slot(world: World, sign_in: Callable[..., Client]) -> None:
    other = world.new_campaign()
    request = other.promote(medium("9"), world.ben)
    assert request.state == "promoted"
    text = sign_in(world.vic).get(f"/reviews/{request.pk}/").content.decode()
    assert "Promoted" in text and 'id="decision"' not in text
    slot = world.campaign.slot
    text = (
        sign_in(world.vic)
        .get(f"/operators/{slot.operator}/{slot.backend}/{slot.hardware}/{slot.workload}/")
        .content.decode()
    )
    assert request.kernel.short in text and "approved by Ben" in text
