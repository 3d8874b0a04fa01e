"""The address of the MCP server in front of the site: who may come in, how often and with how much.

Everything is refused here that needs no knowledge of the protocol. A page of another site cannot reach it: it is asked
for by name (``Host``, against DNS rebinding), by origin, and with a token that no browser sends by itself.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from channels.db import database_sync_to_async
from django.conf import settings
from django.http.request import split_domain_port, validate_host

from apps.bridge.mcp.limits import Buckets, Places
from apps.bridge.mcp.message import BODY_LIMIT, BadMessage, read_message
from apps.stream.origin import allowed
from apps.teams.selectors import token_owner
from apps.teams.tokens import BEARER, Caller

PATHS = ("/mcp", "/mcp/")
REFUSED = -32000  # the first of JSON-RPC's codes for servers
BODY_S = 15.0
TOKEN_LIMIT = 200
log = logging.getLogger(__name__)
Application = Callable[[dict[str, Any], Any, Any], Awaitable[Any]]


class Turned(Exception):
    """A request that is turned away: HTTP status, sentence, further headers, JSON-RPC code."""

    def __init__(self, status: int, text: str, code: int = REFUSED, **headers: str) -> None:
        super().__init__(text)
        self.status, self.text, self.code = status, text, code
        self.headers = {name.replace("_", "-").lower(): value for name, value in headers.items()}


class McpDoor:
    """Outermost layer of HTTP: answers ``/mcp`` itself and passes everything else on to the site."""

    def __init__(self, site: Application, *, per_minute: float = 240, burst: int = 80) -> None:
        self._site = site
        self._asked = Buckets(per_minute=per_minute, burst=burst)
        self._strangers = Buckets(per_minute=20, burst=20)
        self._places = Places(each=6, together=48)

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> Any:
        """Answer or pass on."""
        if scope["type"] != "http" or scope["path"] not in PATHS:
            return await self._site(scope, receive, send)
        try:
            return await self._enter(scope, receive, send)
        except Turned as turned:
            return await refuse(send, turned)

    async def _enter(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        check_place(headers, scope)
        caller = await self._caller(headers, scope)
        assert caller.token is not None
        key = str(caller.token.pk)
        wait = self._asked.take(key)
        if wait:
            raise Turned(429, f"This token asks too often; ask again in {wait} s.", retry_after=str(wait))
        with self._places.place(key) as free:
            if not free:
                raise Turned(429, "Too many requests of this token are in work at once; wait for one to end.",
                             retry_after="2")
            body = await read_body(receive)
            try:
                message = read_message(body)
            except BadMessage as bad:
                raise Turned(400, bad.text, bad.code) from bad
            # The SDK takes 45 MB and a second: loaded for the first caller only, and not while sockets wait for it.
            server = await asyncio.to_thread(importlib.import_module, "apps.bridge.mcp.server")
            await server.serve(caller, scope, message, receive, marked(send))

    async def _caller(self, headers: dict[bytes, str], scope: dict[str, Any]) -> Caller:
        """Who holds the token. Nothing of the token is ever logged or said back. A valid one is never kept out for what
        others of the same address do (they may share a proxy)."""
        given = headers.get(b"authorization", "")
        secret = given.removeprefix(BEARER) if given.startswith(BEARER) else ""
        token = None
        if 0 < len(secret) <= TOKEN_LIMIT:
            token = await database_sync_to_async(token_owner)(secret)
        if token is None:
            address = str((scope.get("client") or ["?"])[0])
            if self._strangers.take(address):
                raise Turned(429, "Too many requests without a valid token came from this address.", retry_after="60")
            log.warning("An MCP request from %s was refused: its API token is missing, unknown or revoked.", address)
            raise Turned(401, "Send an API token of your team as 'Authorization: Bearer ...'. This one is missing, "
                              "unknown or revoked.", www_authenticate="Bearer")
        return Caller(token.user, token)


def check_place(headers: dict[bytes, str], scope: dict[str, Any]) -> None:
    """Whether the request was meant for this site and this address.

    Raises:
        Turned: it was not.
    """
    host = headers.get(b"host", "")
    domain, _ = split_domain_port(host)
    if not domain or not validate_host(domain, settings.ALLOWED_HOSTS):
        raise Turned(421, "This server does not answer to that host name; KERNELOPT_HOSTS lists those it does.")
    origin = headers.get(b"origin")
    if origin is not None and not allowed(origin, host):
        raise Turned(403, "Pages of other origins may not use this address.")
    if scope.get("query_string"):
        raise Turned(400, "This address takes no query. A token belongs in the Authorization header and nowhere else; "
                          "one that stood in an address should be revoked.")
    if scope["method"] != "POST":
        raise Turned(405, "Send messages by POST. This server opens no streams of its own and keeps no sessions.",
                     allow="POST")
    if headers.get(b"content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Turned(415, "Messages are application/json.")
    length = headers.get(b"content-length", "")
    if length.isdigit() and int(length[:12]) > BODY_LIMIT:
        raise Turned(413, f"The body has more than {BODY_LIMIT} bytes.")


async def read_body(receive: Any) -> bytes:
    """The whole body.

    Raises:
        Turned: it is too long, too slow, or the client left.
    """
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    raise Turned(400, "The connection ended before the body did.")
                body += message.get("body", b"")
                if len(body) > BODY_LIMIT:
                    raise Turned(413, f"The body has more than {BODY_LIMIT} bytes.")
                if not message.get("more_body"):
                    return bytes(body)
    except TimeoutError:
        raise Turned(408, f"The body did not arrive within {BODY_S:g} s.") from None


def marked(send: Any) -> Any:
    """``send`` that adds what every answer of this address carries."""

    async def sending(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", []), (b"cache-control", b"no-store"),
                                              (b"x-content-type-options", b"nosniff")]}
        await send(message)

    return sending


async def refuse(send: Any, turned: Turned) -> None:
    """The refusal as a JSON-RPC error without an id."""
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": turned.code, "message": turned.text}}
    body = json.dumps(error).encode()
    headers = {"content-type": "application/json", "content-length": str(len(body)), **turned.headers}
    pairs = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    await marked(send)({"type": "http.response.start", "status": turned.status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})
