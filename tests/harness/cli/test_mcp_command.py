"""``python -m harness mcp`` before it serves: its address, its token, and what it says where neither will do."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from harness.cli import main
from harness.cli.mcp import DEFAULT, TOKEN, address
from harness.domain.errors import UsageError

SECRET = "ko_not_a_real_one"


@pytest.mark.parametrize(("given", "found"), [
    (DEFAULT, "http://127.0.0.1:8000/mcp"), ("http://localhost:8000/", "http://localhost:8000/mcp"),
    ("https://kernels.example.org", "https://kernels.example.org/mcp"),
    ("https://kernels.example.org/mcp", "https://kernels.example.org/mcp"),
    ("https://example.org/kernels/mcp/", "https://example.org/kernels/mcp"), ("http://[::1]:9", "http://[::1]:9/mcp"),
])
def test_the_address_is_completed(given: str, found: str) -> None:
    assert address(given) == found


@pytest.mark.parametrize("given", [
    "", "kernels.example.org", "ftp://example.org", "file:///etc/passwd", "http://", "https://user:ko_x@example.org",
    "https://example.org/?token=ko_x", "https://example.org/#ko_x", "http://example.org:x", "http://10.0.0.7:8000",
    "http://127.0.0.1.example.org", "http://localhost.example.org", "http://[::1",
])
def test_an_address_where_the_token_would_be_readable_or_lost_is_refused(given: str) -> None:
    with pytest.raises(UsageError) as refused:
        address(given)
    assert "ko_x" not in refused.value.text


def test_plain_http_beyond_this_machine_is_said_by_name() -> None:
    assert address("http://10.0.0.7:8000", plain=True) == "http://10.0.0.7:8000/mcp"


@contextmanager
def answering(status: int, body: bytes) -> Iterator[str]:
    """A server of this machine that always answers so."""

    class Always(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Always)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_without_a_token_it_says_where_one_comes_from(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for value in ("", "  ", "ko_ä", "ko_a b", "ko_a\nX-More: 1"):
        monkeypatch.setenv(TOKEN, value)
        assert main(["mcp"]) == 2
        assert TOKEN in capsys.readouterr().err


def test_a_refusal_of_the_site_is_one_sentence_without_the_token(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(TOKEN, SECRET)
    refusal = json.dumps({"error": {"code": -32000, "message": "Send an API token of your team."}}).encode()
    for status, body, word in ((401, refusal, "Send an API token"), (404, b"<html>", "address of a site"),
                               (200, b"not the protocol", "does not answer as an MCP server")):
        with answering(status, body) as url:
            assert main(["mcp", "--url", url]) == 2
        captured = capsys.readouterr()
        assert word in captured.err and captured.err.count("\n") == 1, captured.err
        assert SECRET not in captured.err and captured.out == ""


def test_where_nobody_listens_it_ends(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv(TOKEN, SECRET)
    with answering(200, b"") as url:
        pass
    assert main(["mcp", "--url", url]) == 2
    assert "Is it running" in capsys.readouterr().err
