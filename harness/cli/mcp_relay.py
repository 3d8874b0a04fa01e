"""Between a client on standard input and output and the site's MCP server, by the official SDK on both sides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anyio
import httpx2
import mcp_types as types
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from harness.domain.errors import UsageError

ANSWER_S = 60.0
"""Longer than the longest wait the site grants."""


def relay(url: str, token: str) -> int:
    """Serve until the client is gone.

    Raises:
        UsageError: the site does not answer, or does not take the token.
    """
    try:
        anyio.run(_relay, url, token)
    except BaseExceptionGroup as group:
        raise _sentence(url, list(_leaves(group))) from None
    except (OSError, httpx2.HTTPError, MCPError) as error:
        raise _sentence(url, [error]) from None
    return 0


async def _relay(url: str, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=ANSWER_S) as http:
        await _try(http, url)
        async with Client(streamable_http_client(url, http_client=http), read_timeout_seconds=ANSWER_S) as site:
            server = _server(site)
            async with stdio_server() as (read, write):
                await server.run(read, write, server.create_initialization_options())


async def _try(http: httpx2.AsyncClient, url: str) -> None:
    """Whether the site answers and takes the token, before a protocol says it in its own words."""
    hello = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    answer = await http.post(url, json=hello, headers={"Accept": "application/json, text/event-stream"})
    if answer.status_code == 200:
        return
    try:
        said = str(answer.json()["error"]["message"])[:300]
    except (ValueError, KeyError, TypeError):
        said = "Is this the address of a site?"  # not an answer of this product
    raise UsageError(f"The site at {url} refused ({answer.status_code}). {said}")


def _server(site: Client) -> Server[Any]:
    async def listing(context: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=(await site.list_tools()).tools)

    async def call(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            return await site.call_tool(params.name, params.arguments or {})
        except (OSError, httpx2.HTTPError) as error:
            raise MCPError(types.INTERNAL_ERROR, f"The site does not answer ({type(error).__name__}); nothing was "
                                                 "handed in. Try again.") from error

    server: Server[Any] = Server("kernelopt", title="KernelOpt", instructions=site.instructions,
                                 on_list_tools=listing, on_call_tool=call)
    server.middleware.clear()  # telemetry that nobody reads
    return server


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


def _sentence(url: str, errors: list[BaseException]) -> UsageError:
    for error in errors:
        if isinstance(error, UsageError):
            return error
    kinds = ", ".join(sorted({type(error).__name__ for error in errors}))
    return UsageError(f"The site at {url} does not answer as an MCP server ({kinds}). Is it running, and is this its "
                      "address?")
