"""The address itself, under strangers: what never reaches the protocol, and what the protocol answers to nonsense."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from apps.bridge.mcp import server
from apps.bridge.mcp.door import McpDoor
from apps.bridge.mcp.message import BODY_LIMIT, DEPTH_LIMIT
from apps.bridge.mcp.models import Asking
from apps.campaigns.models import EngineResult
from tests.apps.outside.conftest import HOST, Post, Scene, request, tool

pytestmark = pytest.mark.django_db(transaction=True)


async def count(scene: Scene) -> int:
    """Results of the campaign."""
    return await sync_to_async(EngineResult.objects.filter(campaign=scene.campaign).count)()


async def test_a_name_that_was_bound_to_this_address_elsewhere_is_refused(post: Post) -> None:
    for host in ("evil.example", "evil.example:8000", "", "testserver.evil.example", "testserver@evil.example",
                 "169.254.169.254"):
        assert (await post(tool("list_campaigns"), host=host)).status_code == 421, host


async def test_pages_of_other_origins_are_refused(post: Post) -> None:
    for origin in ("http://evil.example", "http://testserver:3000", "null", "", "file://",
                   "http://testserver.evil.example"):
        assert (await post(tool("list_campaigns"), origin=origin)).status_code == 403, origin


async def test_a_page_of_this_very_site_and_a_script_without_an_origin_may_ask(post: Post) -> None:
    assert (await post(tool("list_campaigns"), origin=f"http://{HOST}")).status_code == 200
    assert (await post(tool("list_campaigns"))).status_code == 200


async def test_without_a_token_nobody_learns_anything(post: Post) -> None:
    given = ("", "Bearer ", "Bearer nonsense", "Bearer " + "x" * 5000, "Basic ZW1tYTpw", "bearer")
    messages = (tool("list_campaigns"), request("initialize"), b"{")
    for authorization, message in itertools.product(given, messages):
        answer = await post(message, secret=None, authorization=authorization)
        assert answer.status_code == 401 and answer.headers["www-authenticate"] == "Bearer", authorization
        assert answer.json()["error"]["message"].startswith("Send an API token")


async def test_a_token_in_the_address_is_refused_and_written_nowhere(
    post: Post, scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "apps"):
        answer = await post(tool("list_campaigns"), secret=None, path=f"/mcp?token={scene.secret}")
        assert answer.status_code == 400 and scene.secret not in answer.text
        answer = await post(tool("list_campaigns"), secret=scene.secret + "x")
        assert answer.status_code == 401 and scene.secret not in answer.text
    ours = "\n".join(record.getMessage() for record in caplog.records if record.name.startswith("apps"))
    assert "refused" in ours and scene.secret not in ours


async def test_there_are_no_streams_and_no_sessions(post: Post) -> None:
    for method in ("GET", "DELETE", "PUT", "HEAD", "OPTIONS"):
        answer = await post(b"", method=method)
        assert answer.status_code == 405 and answer.headers["allow"] == "POST", method


async def test_other_addresses_are_the_sites(post: Post) -> None:
    assert (await post(b"", method="GET", path="/health/")).status_code == 200
    assert (await post(b"", method="GET", path="/mcp/more")).status_code == 404


NO_MESSAGES: list[tuple[bytes, int]] = [
    (b"", -32700), (b"{", -32700), (b"\xff\xfe{}", -32700), (b'{"a": NaN}', -32700), (b"\x00", -32700),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}', -32700), (b'{"a": 1e400}', -32700),
    (json.dumps(tool("\ud800")).encode(), -32700), (json.dumps(request("ping", "\udfff")).encode(), -32700),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":null}', -32600),
    (b"[" * 100_000, -32700), (b'{"a":' * 100_000, -32700), (b"1" * 10_000, -32700),
    (json.dumps([tool("list_campaigns")]).encode(), -32600), (b"[]", -32600), (b"null", -32600), (b'"x"', -32600),
    (b"{}", -32600), (json.dumps({**tool("list_campaigns"), "jsonrpc": "1.0"}).encode(), -32600),
    (b'{"jsonrpc":"2.0","id":1,"result":{}}', -32600),
    (json.dumps(request("ping", deep=json.loads("[" * DEPTH_LIMIT + "]" * DEPTH_LIMIT))).encode(), -32600),
]


async def test_what_is_no_message_is_an_error_of_the_protocol(post: Post) -> None:
    for body, code in NO_MESSAGES:
        answer = await post(body)
        assert answer.status_code == 400, body[:60]
        assert answer.json()["error"]["code"] == code and answer.json()["id"] is None, body[:60]


async def test_ids_of_odd_types_are_refused(post: Post) -> None:
    for number in (None, True, 1.5, 2**53, -(2**60), [], {}, "x" * 129):
        answer = await post(tool("list_campaigns") | {"id": number})
        assert answer.status_code == 400 and answer.json()["id"] is None, number


async def test_ids_of_right_types_come_back(post: Post) -> None:
    for number in (0, -1, 2**53 - 1, "", "a-1", "ü"):
        answer = await post(tool("list_campaigns") | {"id": number})
        assert answer.status_code == 200 and answer.json()["id"] == number, number


async def test_huge_bodies_are_refused_by_what_they_say_and_by_what_they_are(post: Post) -> None:
    big = json.dumps(tool("submit_candidate", source="x" * BODY_LIMIT)).encode()
    assert (await post(big)).status_code == 413
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def endless() -> dict[str, Any]:
        return {"type": "http.request", "body": b" " * 65536, "more_body": True}

    from apps.bridge.mcp.door import Turned, read_body

    with pytest.raises(Turned) as turned:
        await read_body(endless)
    assert turned.value.status == 413


async def test_a_body_that_never_comes_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    from apps.bridge.mcp import door

    monkeypatch.setattr(door, "BODY_S", 0.05)

    async def silent() -> dict[str, Any]:
        await asyncio.Event().wait()
        raise AssertionError

    with pytest.raises(door.Turned) as turned:
        await door.read_body(silent)
    assert turned.value.status == 408


async def test_only_json_is_taken(post: Post) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "", "application/json-patch+json"):
        assert (await post(tool("list_campaigns"), content_type=kind)).status_code == 415


async def test_unknown_tools_and_methods_are_errors_of_the_protocol(post: Post) -> None:
    unknown = await post(tool("approve", request=1))
    assert unknown.json()["error"]["code"] == -32602 and "tools/list" in unknown.json()["error"]["message"]
    for method in ("resources/list", "prompts/list", "sampling/createMessage", "roles/grant"):
        assert (await post(request(method))).json()["error"]["code"] == -32601, method
    assert (await post(request("tools/call"))).json()["error"]["code"] == -32602
    for arguments in ([], "x", 7):
        answer = await post(request("tools/call", name="query_log", arguments=arguments))
        assert answer.json()["error"]["code"] == -32602


async def test_a_call_that_wants_no_answer_does_nothing(post: Post, scene: Scene) -> None:
    before = await count(scene)
    arguments = {"campaign": scene.campaign.pk}
    for name, more in (("query_log", {"direction": None}), ("give_up", {"reason": "Nobody is to hear of this."})):
        message = {**tool(name, **arguments, **more)}
        del message["id"]
        assert (await post(message)).status_code == 202, name
    assert await count(scene) == before and not await sync_to_async(Asking.objects.exists)()


async def test_wrong_arguments_come_back_in_words_and_run_nothing(post: Post, scene: Scene) -> None:
    before = await count(scene)
    for arguments in ({}, {"campaign": scene.campaign.pk}, {"campaign": scene.campaign.pk, "direction": 7},
                      {"campaign": scene.campaign.pk, "direction": None, "more": 1}):
        answer = (await post(tool("query_log", **arguments))).json()["result"]
        assert answer["isError"] and answer["content"][0]["text"], arguments
    for seconds in (-1, 26, 1e9, "5", None, True):
        answer = (await post(tool("wait_for_verdict", campaign=scene.campaign.pk, seconds=seconds))).json()["result"]
        assert answer["isError"], seconds
    assert await count(scene) == before


async def test_versions_with_a_handshake_are_spoken(post: Post) -> None:
    for version in ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"):
        client = {"name": "x", "version": "1"}
        answer = await post(request("initialize", protocolVersion=version, capabilities={}, clientInfo=client))
        assert answer.json()["result"]["protocolVersion"] == version and "mcp-session-id" not in answer.headers
        noted = await post({"jsonrpc": "2.0", "method": "notifications/initialized"}, mcp_protocol_version=version)
        assert noted.status_code == 202
        assert (await post(request("ping"), mcp_protocol_version=version)).json()["result"] == {}


async def test_an_unknown_version_is_refused(post: Post) -> None:
    answer = await post(tool("list_campaigns"), mcp_protocol_version="1999-01-01")
    assert answer.status_code == 400 and "error" in answer.json()


async def test_what_breaks_inside_is_not_told(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: Any) -> None:
        raise RuntimeError("secret of the house")

    monkeypatch.setattr(server.tools, "call", broken)
    answer = await post(tool("list_campaigns"))
    assert answer.json()["error"]["code"] == -32603 and "house" not in answer.text


async def test_a_token_that_asks_too_often_waits(scene: Scene) -> None:
    door = McpDoor(_never, per_minute=1, burst=2)
    statuses = [await _status(door, scene.secret) for _ in range(4)]
    assert statuses == [200, 200, 429, 429]
    assert await _status(door, scene.reading) == 200, "another token has its own"


async def test_strangers_who_guess_are_slowed_down(scene: Scene) -> None:
    door = McpDoor(_never)
    statuses = [await _status(door, f"ko_{number}") for number in range(21)]
    assert statuses[:20] == [401] * 20 and statuses[20] == 429
    assert await _status(door, scene.secret) == 200, "whoever shares their address is not kept out"


async def _never(scope: Any, receive: Any, send: Any) -> None:
    raise AssertionError("the site was asked")


async def _status(door: McpDoor, secret: str) -> int:
    body = json.dumps(request("tools/list")).encode()
    headers = [(b"host", HOST.encode()), (b"content-type", b"application/json"),
               (b"accept", b"application/json, text/event-stream"), (b"authorization", f"Bearer {secret}".encode())]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "query_string": b"", "headers": headers,
             "client": ("203.0.113.9", 4242), "http_version": "1.1", "scheme": "http", "server": (HOST, 80)}
    waiting = [{"type": "http.request", "body": body, "more_body": False}]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        if waiting:
            return waiting.pop()
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await door(scope, receive, send)
    return int(sent[0]["status"])
