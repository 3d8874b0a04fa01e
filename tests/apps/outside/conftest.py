"""A campaign that waits for an agent from outside, tokens of every kind, and a way to speak to the server."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from django.utils import timezone

from apps.bridge.mcp import tools
from apps.bridge.mcp.reply import Reply
from apps.campaigns.models import Campaign
from apps.campaigns.services import engine_tell, start_document
from apps.teams.models import ApiToken, Membership, RoleGrant, Team, User
from apps.teams.selectors import token_owner
from apps.teams.services import token_create
from apps.teams.tokens import Caller
from harness.domain.summary import VerdictSummary
from harness.domain.vocabulary import Backend, Outcome, Stage
from harness.engine.results import BaselineMeasured, result_to_document
from harness.operators import registry
from kernelopt_site.asgi import django_application
from tests.crash.campaigns import begin_campaign, make_person

HOST = "testserver"


@dataclass
class Scene:
    """One team with an engineer and a service account; a stranger in another; and the secrets of their tokens."""

    engineer: User
    maintainer: User
    robot: User
    campaign: Campaign
    secret: str
    reading: str
    foreign: str

    def caller(self, secret: str | None = None) -> Caller:
        """Who comes with a secret, the robot with the scope by default."""
        token = token_owner(secret or self.secret)
        assert token is not None
        return Caller(token.user, token)

    def call(self, name: str, secret: str | None = None, **arguments: Any) -> Reply:
        """A tool as a token's holder calls it; ``campaign`` is the scene's own unless given."""
        if name != "list_campaigns":
            arguments.setdefault("campaign", self.campaign.pk)
        return tools.call(self.caller(secret), name, arguments)

    def token(self, secret: str) -> ApiToken:
        """The row of a secret."""
        token = token_owner(secret)
        assert token is not None
        return token


def join(user: User, team: Team, role: str) -> None:
    """Give a role in a team."""
    membership, _ = Membership.objects.get_or_create(team=team, user=user)
    RoleGrant.objects.create(membership=membership, role=role, granted_at=timezone.now())


def measured_baseline(campaign: Campaign) -> None:
    """Round 0 as if the evaluator had passed it."""
    kernel = start_document(campaign)["baseline"]["digest"]
    summary = VerdictSummary(kernel=kernel, outcome=Outcome.PASSED, stage=Stage.RECHECK, timed=True)
    engine_tell(campaign=campaign, document=result_to_document(BaselineMeasured(summary)))


@pytest.fixture
def scene(db: None) -> Scene:
    """The campaign's baseline is measured: it is the agent's turn."""
    engineer = make_person("emma", "engineer", "reviewer")
    team = Team.objects.get(slug="core")
    maintainer = make_person("mona", "maintainer", "reviewer")
    robot = User.objects.create(username="robot", kind="service")
    join(robot, team, "engineer")
    other = Team.objects.create(slug="other", name="Other")
    stranger = User.objects.create_user("sten", password="a long password")
    join(stranger, other, "engineer")
    join(stranger, other, "maintainer")
    campaign = begin_campaign(engineer, rounds=4, agent="mcp")
    measured_baseline(campaign)
    _, secret = token_create(team=team, user=robot, name="agent", by=maintainer, can_run_campaigns=True)
    _, reading = token_create(team=team, user=robot, name="reader", by=maintainer)
    _, foreign = token_create(team=other, user=stranger, name="other", by=stranger, can_run_campaigns=True)
    return Scene(engineer, maintainer, robot, campaign, secret, reading, foreign)


Post = Callable[..., Awaitable[httpx2.Response]]


@pytest.fixture
def post(scene: Scene) -> Post:
    """``await post(message_or_bytes, secret=..., method=..., path=..., **headers)`` through the site's own entry."""
    from apps.bridge.mcp.door import McpDoor

    door = McpDoor(django_application)

    async def ask(message: Any, *, secret: str | None = scene.secret, method: str = "POST", path: str = "/mcp",
                  **headers: str) -> httpx2.Response:
        sent = {"host": HOST, "content-type": "application/json", "accept": "application/json, text/event-stream"}
        if secret is not None:
            sent["authorization"] = f"Bearer {secret}"
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        transport = httpx2.ASGITransport(app=door)
        async with httpx2.AsyncClient(transport=transport, base_url=f"http://{HOST}") as client:
            return await client.request(method, path, content=body, headers=sent)

    return ask


def request(method: str, number: Any = 1, **params: Any) -> dict[str, Any]:
    """A JSON-RPC request."""
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def tool(name: str, /, **arguments: Any) -> dict[str, Any]:
    """A call of a tool."""
    return request("tools/call", name=name, arguments=arguments)


def ideas() -> list[dict[str, Any]]:
    """A diagnosis."""
    gains = {"h1": 0.4, "h2": 0.2, "h3": 0.1}
    return [{"id": name, "direction": "vectorisation", "function": "_rms_norm", "expected_gain": gain,
             "text": "Wider partial sums keep more of the vector unit busy.", "evidence": "profile: bound by latency"}
            for name, gain in gains.items()]


def kernel(block: int = 32) -> dict[str, Any]:
    """Arguments of ``submit_candidate``: the baseline with another block."""
    source = registry.get("rms_norm").baseline(Backend.NUMBA)
    assert '"BLOCK": 8' in source
    return {"hypothesis": "h1", "source": source.replace('"BLOCK": 8', f'"BLOCK": {block}'),
            "change_summary": "Wider blocks.", "claimed_gain": 0.4, "retry_of": None, "essential_difference": None}
