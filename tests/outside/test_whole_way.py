"""The official MCP client against a real site: from the diagnosis to a review request, and nothing more. The evaluator
is a stand-in with invented times; everything else is real."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from harness.domain.goal import goal_from_document
from harness.hardware.detect import hardware_name
from tests.browser.conftest import PROJECT, Site, served
from tests.crash.conftest import FAKE
from tests.outside.engineer import Engineer, Refused

pytestmark = pytest.mark.slow
PATIENCE_S = 60.0


@dataclass
class House:
    """A running site and the secrets of two tokens."""

    site: Site
    agent: str
    stranger: str

    def api(self, path: str, document: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Ask the site's API as the agent's token."""
        data = json.dumps(document).encode() if document is not None else None
        asked = urllib.request.Request(self.site.url + path, data, {"Authorization": f"Bearer {self.agent}"})
        try:
            with urllib.request.urlopen(asked, timeout=60) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def run(self, module: str) -> Any:
        """What a module of this folder prints about the site's own database."""
        environment = os.environ | {
            "DJANGO_SETTINGS_MODULE": "kernelopt_site.settings.base", "KERNELOPT_VAR": str(self.site.folder),
            "KERNELOPT_DEMO": "0", "KERNELOPT_SQLITE": str(self.site.folder / "kernelopt.sqlite3")}
        done = subprocess.run([sys.executable, "-m", f"tests.outside.{module}"], cwd=PROJECT, env=environment,
                              check=True, stdout=subprocess.PIPE)
        return json.loads(done.stdout)

    @asynccontextmanager
    async def over_http(self, secret: str) -> AsyncIterator[Client]:
        """A client that speaks to the site's address."""
        async with (httpx2.AsyncClient(headers={"Authorization": f"Bearer {secret}"}, timeout=60) as http,
                    Client(streamable_http_client(f"{self.site.url}/mcp", http_client=http)) as client):
            yield client

    @asynccontextmanager
    async def over_stdio(self, secret: str, *words: str) -> AsyncIterator[Client]:
        """A client that starts the server as a command."""
        command = StdioServerParameters(
            command=sys.executable, args=["-m", "harness", "mcp", "--url", self.site.url, *words], cwd=str(PROJECT),
            env={"KERNELOPT_TOKEN": secret})
        async with Client(command, mode="legacy") as client:
            yield client


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """A site with its three processes, people and tokens."""
    with served(tmp_path, KERNELOPT_EVALUATE_COMMAND=FAKE, KERNELOPT_CANARY_EVERY="0") as site:
        made = House(site, "", "")
        secrets = made.run("people")
        made.agent, made.stranger = secrets["agent"], secrets["stranger"]
        yield made


def goal(rounds: int) -> dict[str, Any]:
    """rms_norm on this machine, by an agent outside."""
    return {"version": 1, "operator": "rms_norm", "backend": "numba", "hardware": hardware_name(), "workload": "llm",
            "grant": "heavy", "agent": {"kind": "mcp"}, "budget": {"rounds": rounds, "evaluations": 20, "seconds": 600}}


async def test_a_client_drives_a_campaign_to_a_review_request_and_nothing_more(house: House) -> None:
    document = goal(8)
    status, campaign = house.api("/api/v1/campaigns", {"team": "core", "goal": document, "name": "from outside"})
    assert status == 201, campaign
    number = campaign["id"]

    # The diagnosis through the command: standard input and output.
    async with house.over_stdio(house.agent) as client:
        assert "query_log" in (client.instructions or "")
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert {"list_campaigns", "wait_for_verdict", "query_log", "submit_candidate", "give_up"} <= names
        listed = (await client.call_tool("list_campaigns", {})).structured_content
        assert [row["campaign"] for row in listed["campaigns"]] == [number]
        first = Engineer(client, number, goal_from_document(document))
        standing = await first.wait()
        assert standing["asked_for"] == "diagnosis" and "bytes" in await first.use("read_profile", shape=None)
        assert "contract" in (await first.use("read_brief")).lower()
        with pytest.raises(Refused, match="query_log"):
            await first.use("give_up", reason="Handing in without having read the log.")
        await first.answer(standing)

    # The web process dies between the log and the answer: its record of the query does not.
    async with house.over_http(house.agent) as client:
        second = Engineer(client, number, goal_from_document(document), first.tried)
        standing = await second.wait()
        assert standing["last_round"]["comparison"] == "faster" and standing["asked_for"] == "candidate"
        await second.read(standing)
    house.site.child("daphne").kill()
    await until_it_answers(house)
    async with house.over_http(house.agent) as client:
        third = Engineer(client, number, goal_from_document(document), second.tried)
        await third.answer(standing)
        standing = await third.wait()
        await third.use("query_log", direction=None)
        await third.use("give_up", reason="Every move of the book that is left would gain too little.")
        standing = await third.wait()
        assert standing["waits_for"] == "person" and standing["state"] == "plateau"
        assert [row["state"] for row in standing["review_requests"]] == ["open"]
        for tool in ("query_log", "read_verdict"):
            arguments = {"direction": None} if tool == "query_log" else {"round": 1}
            await third.use(tool, **arguments)  # reading stays open
        with pytest.raises(Refused, match="not your turn"):
            await third.answer({**standing, "round": 9, "asked_for": "candidate"})

    async with house.over_http(house.stranger) as client:
        assert (await client.call_tool("list_campaigns", {})).structured_content == {"campaigns": []}
        with pytest.raises(Refused, match="no such campaign"):
            await Engineer(client, number, goal_from_document(document)).wait()

    # What is left is people's: no decision, no promotion, no champion, and the token's people may not approve.
    found = house.run("outcome")
    assert [row["state"] for row in found["requests"]] == ["open"] and found["decided"] == 0
    assert found["grants"] == ["heavy"]
    assert found["deeds"] == ["campaign.created", "campaign.proposed", "campaign.started"]
    assert all(queries >= 1 for _, _, queries in found["askings"])
    assert {"robot", "mia"} <= set(found["contributors"])
    assert house.api("/api/v1/champions/rms_norm?backend=numba&hardware=" + hardware_name())[0] in (404, 409)
    assert house.agent not in house.site.log()


async def until_it_answers(house: House) -> None:
    """The supervisor starts the web process again."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            if house.api("/api/v1/campaigns")[0] == 200:
                return
        except (urllib.error.URLError, OSError):
            await asyncio.sleep(0.2)
    raise AssertionError(house.site.log())
