"""The HTTP server: models, chat completions and responses, streamed or whole."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from harness.agents.llm.scripted.conversation import conversation_of
from harness.agents.llm.scripted.personas import PERSONAS, Persona
from harness.agents.llm.scripted.wire import chunks, completion, events, messages_of, response

MOST_BYTES = 16 << 20


class ScriptedServer(ThreadingHTTPServer):
    """Plays personas. A request's model names one; with ``persona`` that one answers whatever model is asked for."""

    daemon_threads = True

    def __init__(self, port: int = 0, persona: str | None = None, host: str = "127.0.0.1") -> None:
        super().__init__((host, port), _Handler)
        self.persona = PERSONAS[persona] if persona else None
        self.ending = threading.Event()

    @property
    def url(self) -> str:
        """The address to put into the file of endpoints."""
        return f"http://{self.server_address[0]!s}:{self.server_port}/v1"

    def who(self, model: object) -> Persona | None:
        """Who answers for a model."""
        return self.persona or PERSONAS.get(str(model))


@contextmanager
def scripted(persona: str | None = None) -> Iterator[ScriptedServer]:
    """A server on a free port while the block runs."""
    server = ScriptedServer(persona=persona)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.ending.set()
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: ScriptedServer

    def do_GET(self) -> None:
        if self.path.rstrip("/") != "/v1/models":
            self._refuse(404, f"There is nothing at {self.path}.")
            return
        names = [self.server.persona.name] if self.server.persona else list(PERSONAS)
        self._whole(200, {"object": "list", "data": [{"id": name, "object": "model", "owned_by": "script"}
                                                     for name in names]})

    def do_POST(self) -> None:
        chat = self.path == "/v1/chat/completions"
        if not chat and self.path != "/v1/responses":
            self._refuse(404, f"There is nothing at {self.path}.")
            return
        body = self._body()
        if body is None:
            return
        persona = self.server.who(body.get("model"))
        if persona is None:
            self._refuse(404, f"The model {body.get('model')!r} does not exist.", "model_not_found")
            return
        try:
            said = persona.answer(conversation_of(messages_of(body)))
        except Exception as error:  # noqa: BLE001 - a script that trips over a strange request is a server's error
            self._refuse(500, f"The script of {persona.name} failed: {type(error).__name__}: {error}")
            return
        identity = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:16]
        if not body.get("stream"):
            self._wait(persona.first_s)
            self._whole(200, (completion if chat else response)(identity, body, said))
            return
        self._stream((chunks if chat else events)(identity, body, said), persona, chat)

    def _stream(self, pieces: Iterator[Mapping[str, Any]], persona: Persona, chat: bool) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        with suppress(BrokenPipeError, ConnectionResetError):  # who asked may hang up
            self._wait(persona.first_s)
            for piece in pieces:
                name = "" if chat else f"event: {piece['type']}\n"
                self.wfile.write(f"{name}data: {json.dumps(piece)}\n\n".encode())
                self.wfile.flush()
                self._wait(persona.gap_s)
            if chat:
                self.wfile.write(b"data: [DONE]\n\n")

    def _body(self) -> dict[str, Any] | None:
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > MOST_BYTES:
            self._refuse(413, "The request has no length or is too long.")
            return None
        try:
            body = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            self._refuse(400, "The request is no JSON object.")
            return None
        return body

    def _wait(self, seconds: float) -> None:
        if seconds:
            self.server.ending.wait(seconds)

    def _refuse(self, status: int, text: str, code: str | None = None) -> None:
        self._whole(status, {"error": {"message": text, "type": "invalid_request_error", "code": code}})

    def _whole(self, status: int, document: Mapping[str, Any]) -> None:
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Nothing: requests carry keys and whole prompts."""
