"""A campaign with a team, its people, and sockets that follow it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.utils import timezone

from apps.campaigns.models import Campaign
from apps.kernels.models import Hardware, Operator, Slot
from apps.stream.services import recording
from apps.teams.models import Membership, RoleGrant, Team, User
from kernelopt_site.asgi import application

ORIGIN = "http://testserver"
PATIENCE_S = 60.0
"""Seconds a frame may take: another process may have the cores."""


@dataclass
class Scene:
    """What the stream tests talk about."""

    team: Team
    member: User
    stranger: User
    campaign: Campaign
    other_campaign: Campaign

    def write(self, count: int = 1, kind: str = "round.started", campaign: Campaign | None = None) -> None:
        """Append ``count`` events, one transaction each."""
        stream = (campaign or self.campaign).stream
        for number in range(count):
            with recording(stream) as log:
                log.append(stream, kind, {"round": number})


def _person(name: str, team: Team | None) -> User:
    user = User.objects.create_user(name, password="a long password")
    if team is not None:
        membership = Membership.objects.create(team=team, user=user)
        RoleGrant.objects.create(membership=membership, role="viewer", granted_at=timezone.now())
    return user


def _campaign(team: Team, person: User) -> Campaign:
    operator, _ = Operator.objects.get_or_create(name="rms_norm", version="1", title="RMSNorm")
    hardware, _ = Hardware.objects.get_or_create(name="cpu-x-1t")
    slot, _ = Slot.objects.get_or_create(
        team=team, operator=operator, backend="numba", hardware=hardware, workload="llm")
    return Campaign.objects.create(team=team, slot=slot, name="c", goal={}, goal_digest="sha256:0", grant="medium",
                                   agent_kind="playbook", started_by=person)


@pytest.fixture
def scene(transactional_db: None) -> Scene:
    """One team with a viewer and two campaigns, another team with a stranger."""
    team = Team.objects.create(slug="core", name="Core")
    other = Team.objects.create(slug="other", name="Other")
    member, stranger = _person("member", team), _person("stranger", other)
    return Scene(team, member, stranger, _campaign(team, member), _campaign(team, member))


def cookie_of(user: User) -> str:
    """The session cookie of a signed-in ``user``."""
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    return f"sessionid={session.session_key}"


class Reader:
    """A socket that keeps what it got."""

    def __init__(self, socket: WebsocketCommunicator) -> None:
        self.socket = socket
        self.ephemeral: list[dict[str, Any]] = []

    async def frame(self, timeout: float = PATIENCE_S) -> dict[str, Any]:
        """The next frame of any kind."""
        return await self.socket.receive_json_from(timeout)

    async def durable(self, count: int, *, acknowledge: bool = True) -> list[dict[str, Any]]:
        """The next ``count`` durable frames; others are put aside."""
        found: list[dict[str, Any]] = []
        while len(found) < count:
            frame = await self.frame()
            if "seq" not in frame:
                self.ephemeral.append(frame)
                continue
            found.append(frame)
            if acknowledge:
                await self.socket.send_json_to({"kind": "ack", "seq": frame["seq"]})
        return found

    async def until(self, kind: str) -> dict[str, Any]:
        """The next frame of ``kind``; others are put aside."""
        while (frame := await self.frame())["kind"] != kind:
            self.ephemeral.append(frame)
        return frame

    async def closed(self) -> int:
        """The close code; frames before it are put aside."""
        while True:
            message = await self.socket.receive_output(PATIENCE_S)
            if message["type"] == "websocket.close":
                return message["code"]


Opener = Callable[..., Awaitable[Reader]]


@pytest_asyncio.fixture
async def follow(scene: Scene) -> AsyncIterator[Opener]:
    """Opens sockets on the scene's campaign and disconnects them at the end."""
    readers: list[Reader] = []

    async def open_socket(user: User | None, *, after: int = 0, path: str = "", origin: str | None = ORIGIN) -> Reader:
        headers = [(b"host", b"testserver")]
        if origin is not None:
            headers.append((b"origin", origin.encode()))
        if user is not None:
            headers.append((b"cookie", (await sync_to_async(cookie_of)(user)).encode()))
        address = path or f"/ws/campaigns/{scene.campaign.pk}/"
        socket = WebsocketCommunicator(application, f"{address}?after={after}", headers)
        connected, _ = await socket.connect(timeout=PATIENCE_S)
        reader = Reader(socket)
        if not connected:
            raise ConnectionRefusedError(address)
        readers.append(reader)
        return reader

    yield open_socket
    for reader in readers:
        # What ended a late socket is no Exception: let through, it would keep other fixtures from cleaning up.
        with contextlib.suppress(asyncio.CancelledError):
            await reader.socket.disconnect(timeout=PATIENCE_S)
