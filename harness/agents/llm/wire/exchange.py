"""One request over the network with the ``openai`` package: asynchronous, so that it ends the moment it is told to.

The package is given no key: a hook puts it on the request as it leaves, together with the few headers that have to go,
so that neither the package's own environment variables nor its telemetry reach an endpoint. Redirects and proxies of
the environment are not followed: the key goes to the host in the settings and nowhere else.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import openai

from harness.agents.llm.endpoints import Endpoint
from harness.agents.llm.ports import Delta
from harness.agents.llm.wire.client import http_package, make_client
from harness.agents.llm.wire.faults import Fault, from_body, from_status
from harness.agents.llm.wire.gather import Nonsense
from harness.agents.llm.wire.sending import Pieces, Sending
from harness.agents.llm.wire.sse import LONGEST_EVENT, Events, parsed

Told = Callable[[Delta], None]


async def exchange(endpoint: Endpoint, key: str | None, sending: Sending, pieces: Pieces, told: Told) -> Fault | None:
    """Send, gather what comes into ``pieces``, tell of each piece. ``None`` when the answer is whole.

    Nothing but ``asyncio.CancelledError`` leaves: the package's exceptions hold the request with its key.
    """
    network = http_package()
    try:
        try:
            made = make_client(endpoint, key)
        except OSError as error:
            why = error.strerror or type(error).__name__
            return Fault("none", f"the file {endpoint.ca_file} of its ca_file cannot be used ({why})")
        async with asyncio.timeout(endpoint.connect_s + endpoint.answer_s), made as client:
            return await _ask(client, endpoint, sending, pieces, told)
    except openai.APIStatusError as error:
        headers = {name.lower(): value for name, value in error.response.headers.items()}
        return from_status(error.status_code, headers, error.body, sending.sent, time.time())
    except openai.APIConnectionError as error:
        return _unreached(error, endpoint, pieces)
    except (TimeoutError, network.TimeoutException):
        return _failed(pieces, f"the whole answer took longer than {endpoint.answer_s:g} s")
    except Nonsense as error:
        return Fault("cut", str(error))
    except (network.RequestError, network.StreamError, OSError) as error:
        return _failed(pieces, f"the connection broke ({type(error).__name__})")
    except Exception as error:  # noqa: BLE001 - whatever a foreign server provokes, the asking thread waits for an end
        return Fault("cut", f"the answer could not be read ({type(error).__name__})")


async def _ask(client: openai.AsyncOpenAI, endpoint: Endpoint, sending: Sending, pieces: Pieces,
               told: Told) -> Fault | None:
    body = dict(sending.body)
    model, streams = body.pop("model"), bool(body.pop("stream", False))
    opening: Any
    if sending.api == "chat":
        opening = client.chat.completions.with_streaming_response.create(
            model=model, messages=body.pop("messages"), stream=streams, extra_body=body)
    else:
        opening = client.responses.with_streaming_response.create(
            model=model, input=body.pop("input"), stream=streams, extra_body=body)
    # An answer that comes whole begins when it is over.
    first_s = endpoint.first_token_s if streams else endpoint.answer_s
    try:
        async with asyncio.timeout(endpoint.connect_s + first_s):
            response = await opening.__aenter__()
    except TimeoutError:
        return Fault("wait", f"no answer began within {first_s:g} s")
    try:
        if "event-stream" in response.headers.get("content-type", ""):
            return await _stream(response.iter_bytes(), endpoint, sending, pieces, told)
        fault = _take(parsed(await _whole(response.iter_bytes())), sending, pieces, told)
        whole = pieces.gathered.ended or pieces.gathered.anything
        return fault or (None if whole else Fault("cut", "what came is no completion"))
    finally:
        await opening.__aexit__(None, None, None)


async def _whole(source: AsyncIterator[bytes]) -> bytes:
    """A document that comes whole. JSON of a few bytes may take twenty times as many as objects, so that it has to be
    far shorter than what may come in a stream."""
    data = bytearray()
    async for piece in source:
        data += piece
        if len(data) > LONGEST_EVENT:
            raise Nonsense("the answer is larger than any may be")
    return bytes(data)


async def _stream(source: AsyncIterator[bytes], endpoint: Endpoint, sending: Sending, pieces: Pieces,
                  told: Told) -> Fault | None:
    """Take events in until the end that is announced, or the one that the connection's end makes."""
    events, chunks, announced = Events(), aiter(source), False
    loop = asyncio.get_running_loop()
    why, until = f"no answer began within {endpoint.first_token_s:g} s", loop.time() + endpoint.first_token_s
    while not announced:
        try:
            async with asyncio.timeout_at(until):
                data = await anext(chunks, None)
        except TimeoutError:
            return _failed(pieces, why)
        for document in events.close() if data is None else events.feed(data):
            if document is None:
                announced = True
                break
            fault = _take(document, sending, pieces, told)
            if fault is not None:
                return fault
            # Only what is an event counts: comments that keep a connection alive say nothing of the model.
            why, until = f"nothing further came within {endpoint.gap_s:g} s", loop.time() + endpoint.gap_s
        if data is None:
            break
    if pieces.gathered.ended or (announced and sending.api == "chat"):
        return None
    return Fault("cut", "the stream ended in the middle of the answer")


def _take(document: Any, sending: Sending, pieces: Pieces, told: Told) -> Fault | None:
    error = document.get("error") if isinstance(document, Mapping) else None
    response = document.get("response") if isinstance(document, Mapping) else None
    if not error and isinstance(response, Mapping):
        error = response.get("error")
    if not error and isinstance(document, Mapping) and document.get("type") == "error":
        error = document
    if error:
        return from_body(error, sending.sent, pieces.gathered.anything)
    for delta in pieces.feed(document):
        told(delta)
    return None


def _failed(pieces: Pieces, text: str) -> Fault:
    return Fault("cut" if pieces.gathered.anything else "wait", text)


def _unreached(error: openai.APIConnectionError, endpoint: Endpoint, pieces: Pieces) -> Fault:
    """A connection that did not come about. A certificate that is not trusted stays so."""
    causes: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and len(causes) < 8:
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__
    nonsense = next((item for item in causes if isinstance(item, Nonsense)), None)
    if nonsense is not None:
        return Fault("cut", str(nonsense))
    if any(isinstance(item, ssl.SSLCertVerificationError) or "CERTIFICATE_VERIFY_FAILED" in str(item)
           for item in causes):
        return Fault("none", "its certificate is not trusted; name the authority's file in ca_file")
    if isinstance(error, openai.APITimeoutError):
        return _failed(pieces, f"no connection or no answer came within {endpoint.connect_s:g} s")
    said = next((str(item) for item in reversed(causes) if isinstance(item, OSError) and str(item)), str(causes[-1]))
    return _failed(pieces, f"it cannot be reached: {said}")
