"""A server that plays what a test wrote down, byte for byte, and remembers what it was sent."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Play = Callable[["Handler"], None]


@dataclass
class Seen:
    """One request as it arrived."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class Strange:
    """A running server. ``plays`` are used up one a request; the last one stays."""

    plays: list[Play]
    url: str = ""
    seen: list[Seen] = field(default_factory=list)
    hung_up: threading.Event = field(default_factory=threading.Event)
    open_now: int = 0
    most_open: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    release: threading.Event = field(default_factory=threading.Event)


class Handler(BaseHTTPRequestHandler):
    """Reads a request and hands itself to the next play."""

    protocol_version = "HTTP/1.1"
    strange: Strange

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        here = self.strange
        with here.lock:
            here.seen.append(Seen(self.path, {name.lower(): value for name, value in self.headers.items()}, body))
            play = here.plays.pop(0) if len(here.plays) > 1 else here.plays[0]
            here.open_now += 1
            here.most_open = max(here.most_open, here.open_now)
        try:
            play(self)
        except (BrokenPipeError, ConnectionResetError):
            here.hung_up.set()
        finally:
            with here.lock:
                here.open_now -= 1
            self.close_connection = True

    def head(self, status: int = 200, kind: str = "text/event-stream", **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Connection", "close")
        self.end_headers()

    def put(self, data: bytes | str) -> None:
        self.wfile.write(data.encode() if isinstance(data, str) else data)
        self.wfile.flush()

    def log_message(self, *_: Any) -> None:
        """Nothing: a test reads what it wants from ``seen``."""


def whole(status: int, document: Any, **headers: str) -> Play:
    """One JSON document (or a text) with a status."""
    data = document if isinstance(document, str) else json.dumps(document)

    def play(handler: Handler) -> None:
        handler.head(status, "application/json", **headers)
        handler.put(data)

    return play


def refusal(status: int, message: str, **more: Any) -> Play:
    """An error in OpenAI's form."""
    return whole(status, {"error": {"message": message, **more}})


def stream(*pieces: Any, done: bool = True) -> Play:
    """Events; texts go out as they are."""
    def play(handler: Handler) -> None:
        handler.head()
        for piece in pieces:
            handler.put(piece if isinstance(piece, str | bytes) else f"data: {json.dumps(piece)}\n\n")
        if done:
            handler.put("data: [DONE]\n\n")

    return play


def hanging(*pieces: Any) -> Play:
    """Some events, and then nothing until the client hangs up or the server closes."""
    def play(handler: Handler) -> None:
        handler.head()
        for piece in pieces:
            handler.put(f"data: {json.dumps(piece)}\n\n")
        while not handler.strange.release.wait(0.02):
            handler.put(": still here\n\n")

    return play


def chunk(finish: str | None = None, *, usage: Any = None, **delta: Any) -> dict[str, Any]:
    """A piece of a completion."""
    piece: dict[str, Any] = {"model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    return piece | ({"usage": usage} if usage is not None else {})


def call(index: int | None, name: str | None = None, arguments: Any = None,
         identity: str | None = None) -> dict[str, Any]:
    """A piece of a tool call."""
    item: dict[str, Any] = {"function": {}}
    if index is not None:
        item["index"] = index
    if identity is not None:
        item["id"] = identity
    if name is not None:
        item["function"]["name"] = name
    if arguments is not None:
        item["function"]["arguments"] = arguments
    return item


HELLO = stream(chunk(content="hel"), chunk(content="lo"), chunk("stop"),
               {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}})


@contextmanager
def serving(*plays: Play) -> Iterator[Strange]:
    """The server while the block runs."""
    strange = Strange(list(plays))
    kind = type("Bound", (Handler,), {"strange": strange})
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    server.daemon_threads = True
    strange.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield strange
    finally:
        strange.release.set()
        server.shutdown()
        server.server_close()


def joined(pieces: Iterable[Any]) -> str:
    """The texts of deltas together."""
    return "".join(piece.text for piece in pieces)
