"""The same events over plain HTTP."""

from __future__ import annotations

import pytest
from django.test import Client

from apps.teams.services import role_grant, token_create
from tests.apps.stream.conftest import Scene

pytestmark = pytest.mark.django_db(transaction=True)


def _address(scene: Scene, after: str = "0") -> str:
    return f"/api/v1/campaigns/{scene.campaign.pk}/events?after={after}"


def test_a_member_reads_what_came_after(client: Client, scene: Scene) -> None:
    scene.write(4)
    client.force_login(scene.member)
    answer = client.get(_address(scene, "2"))
    assert [event["seq"] for event in answer.json()["events"]] == [3, 4]
    assert answer.json()["head"] == 4 and answer["Cache-Control"] == "no-store"


def test_nobody_else_does(client: Client, scene: Scene) -> None:
    scene.write()
    assert client.get(_address(scene)).status_code == 401
    client.force_login(scene.stranger)
    assert client.get(_address(scene)).status_code == 404
    assert client.get("/api/v1/teams/core/events").status_code == 404
    assert client.get("/api/v1/campaigns/999999/events").status_code == 404


def test_a_token_reads_its_own_team_only(client: Client, scene: Scene) -> None:
    role_grant(team=scene.team, user=scene.member, role="maintainer", by=None)
    _, secret = token_create(team=scene.team, user=scene.member, name="t", by=scene.member)
    scene.write()
    bearer = {"Authorization": f"Bearer {secret}"}
    assert len(client.get(_address(scene), headers=bearer).json()["events"]) == 1
    assert client.get("/api/v1/teams/other/events", headers=bearer).status_code == 404
    assert client.get(_address(scene), headers={"Authorization": "Bearer ko_wrong"}).status_code == 401


@pytest.mark.parametrize("after", ["-1", "x", "1e3", "٣", "9" * 20])
def test_a_number_that_is_none_is_explained(client: Client, scene: Scene, after: str) -> None:
    client.force_login(scene.member)
    answer = client.get(_address(scene, after))
    assert answer.status_code == 422 and "event number" in answer.json()["text"]


@pytest.mark.parametrize("address", ["/api/v1/nothing", "/api/v1/campaigns/", "/api/v1/campaigns/x/events", "/api/v2/"])
def test_an_unknown_address_is_answered_by_a_document(client: Client, address: str) -> None:
    for answer in (client.get(address), client.post(address)):
        assert (answer.status_code, answer["Content-Type"]) == (404, "application/json")
        assert answer.json()["code"] == "not_found" and "docs/api.md" in answer.json()["text"]
