"""The protocol, by the official SDK: one request in, one JSON answer out, nothing kept between requests."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

import mcp_types as types
from channels.db import database_sync_to_async
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError

from apps.bridge import api
from apps.bridge.mcp import tools
from apps.bridge.mcp.message import BODY_LIMIT
from apps.teams.tokens import Caller

LOOK_EVERY_S = 0.5
THREADS = 4
Result = TypeVar("Result")

log = logging.getLogger(__name__)
logging.getLogger("mcp").setLevel(logging.ERROR)  # it reports every request, and strangers' headers as warnings
_threads = ThreadPoolExecutor(THREADS, thread_name_prefix="mcp")

INSTRUCTIONS = """\
You are the agent of kernel optimisation campaigns of kind `mcp`. list_campaigns names them; wait_for_verdict says \
whose turn it is and what you are asked for. In every answer: read the log (query_log) first, then state hypotheses \
and submit a candidate. The site checks, verifies and times it; only its measurements decide. When the campaign waits \
for a person, stop: people decide about reviews, plateaus and promotions, and no tool here does."""


async def serve(caller: Caller, scope: dict[str, Any], body: bytes, receive: Any, send: Any) -> None:
    """Answer one request of ``caller``; ``body`` is a message that was looked at already."""
    manager = StreamableHTTPSessionManager(
        server_for(caller), json_response=True, stateless=True, max_request_body_size=BODY_LIMIT)
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Any:
        return waiting.pop() if waiting else await receive()

    async with manager.run():
        await manager.handle_request(scope, again, send)


def server_for(caller: Caller) -> Server[Any]:
    """A server whose tools act for ``caller`` and nobody else."""

    async def listing(context: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[
            types.Tool(name=tool.name, description=tool.description, input_schema=tool.schema,
                       annotations=types.ToolAnnotations(read_only_hint=tool.reads, open_world_hint=False))
            for tool in tools.offered().values()])

    async def call(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name not in tools.offered():
            raise MCPError(types.INVALID_PARAMS, f"There is no tool '{params.name[:64]}'. tools/list names those there "
                                                 "are.")
        try:
            reply = await _reply(caller, params.name, params.arguments or {})
        except Exception as error:
            log.exception("The MCP tool %s failed.", params.name)
            raise MCPError(types.INTERNAL_ERROR, "The site failed at this call; nothing was handed in. Its log says "
                                                 "more. Try again.") from error
        return types.CallToolResult(content=[types.TextContent(type="text", text=reply.text)],
                                    structured_content=reply.data, is_error=reply.is_error)

    server: Server[Any] = Server("kernelopt", version=api.evaluator_version(), title="KernelOpt",
                                 instructions=INSTRUCTIONS, on_list_tools=listing, on_call_tool=call)
    server.middleware.clear()  # telemetry that nobody reads
    return server


async def _reply(caller: Caller, name: str, arguments: dict[str, Any]) -> tools.Reply:
    """The answer of a tool; ``wait_for_verdict`` looks again until there is something to say or its time is up."""
    deadline = time.monotonic() + tools.patience(name, arguments)
    while True:
        reply = await _in_thread(lambda: tools.call(caller, name, arguments))
        moved = False
        while reply.mark is not None and not moved:
            left = deadline - time.monotonic()
            if left <= 0:
                return reply
            await asyncio.sleep(min(LOOK_EVERY_S, left))
            moved = await _in_thread(partial(tools.moved, caller, reply))
        if not moved:
            return reply


async def _in_thread(deed: Callable[[], Result]) -> Result:
    found: Result = await database_sync_to_async(deed, thread_sensitive=False, executor=_threads)()
    return found
