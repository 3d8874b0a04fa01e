"""The ``openai`` package's client for one request: what may leave with it, and how much may come back."""

from __future__ import annotations

import functools
import logging
import ssl
import sys
from collections.abc import AsyncIterator
from types import ModuleType
from typing import Any

import openai

from harness.agents.llm.endpoints import Endpoint
from harness.agents.llm.wire.gather import Nonsense

LEAVING = frozenset({"host", "accept", "connection", "content-type", "content-length", "user-agent",
                     "x-stainless-raw-response"})
"""Headers that go out. The last one is read again by the package itself when the response is there."""
MOST_BYTES, MOST_ERROR_BYTES = 256 << 20, 256 << 10
WRITE_S = 60.0
for _chatty in ("httpcore", "httpcore2", "httpx", "httpx2", "openai"):
    # At the level of debugging these write headers out, and an endpoint may send the key back in one.
    logging.getLogger(_chatty).setLevel(logging.WARNING)


def make_client(endpoint: Endpoint, key: str | None) -> openai.AsyncOpenAI:
    """A client that sends the key to this endpoint's host alone and reads no more than an answer may have."""

    async def dress(request: Any) -> None:
        for name in list(request.headers):
            if name.lower() not in LEAVING:
                del request.headers[name]
        request.headers["Accept-Encoding"] = "identity"
        if key:
            request.headers["Authorization"] = f"Bearer {key}"

    async def bound(response: Any) -> None:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise Nonsense("the answer is packed, which was not asked for")
        most = MOST_BYTES if response.status_code < 300 else MOST_ERROR_BYTES
        response.stream = _bounded()(response.stream, most)

    # Reading has limits of its own, by events; this one is for what hangs below them.
    timeout = http_package().Timeout(connect=endpoint.connect_s, pool=endpoint.connect_s, write=WRITE_S,
                                     read=endpoint.connect_s + max(endpoint.first_token_s, endpoint.answer_s))
    http = openai.DefaultAsyncHttpxClient(
        trust_env=False, follow_redirects=False, verify=_trusted(endpoint.ca_file), timeout=timeout,
        event_hooks={"request": [dress], "response": [bound]})
    return openai.AsyncOpenAI(api_key="added by a hook", base_url=endpoint.url, max_retries=0, timeout=timeout,
                              http_client=http)


@functools.cache
def _trusted(ca_file: str | None) -> ssl.SSLContext:
    """The authorities for certificates: the system's, and one of the endpoint's own."""
    context = ssl.create_default_context()
    if ca_file:
        context.load_verify_locations(ca_file)
    return context


@functools.cache
def _bounded() -> type:
    class Bounded(http_package().AsyncByteStream):  # type: ignore[misc]
        """A response's body that may not be longer than said."""

        def __init__(self, stream: Any, most: int) -> None:
            self._stream, self._left = stream, most

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for data in self._stream:
                self._left -= len(data)
                if self._left < 0:
                    raise Nonsense("the answer is larger than any may be")
                yield data

        async def aclose(self) -> None:
            await self._stream.aclose()

    return Bounded


@functools.cache
def http_package() -> ModuleType:
    """The HTTP library below the ``openai`` package, which has changed its name between two majors."""
    base = next(kind for kind in openai.DefaultAsyncHttpxClient.__mro__ if kind.__name__ == "AsyncClient")
    return sys.modules[base.__module__.partition(".")[0]]
