"""A campaign of a language model with its turns, kept by the service as the engine keeps them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gate_world import World

from apps.campaigns.models import AgentTurn
from apps.campaigns.turns.services import turn_keep
from harness.domain.codec import to_document
from harness.domain.digest import digest_document
from harness.domain.turn import Answer, ToolCall, Turn, Usage

HOSTILE = ("<script>alert(1)</script><img src=x onerror=alert(2)>\u202egnp.exe\u2066\x1b[31mred\x00 &amp; "
           "{{ 7|add:7 }} \ud800")
"""Markup, marks that reverse and hide, a terminal escape, NUL, an entity, a template, and half a character."""


ENDPOINTS = """
[endpoint.local]
url = "http://127.0.0.1:9/v1"
key_variable = "A_KEY_OF_THE_TESTS"
models = ["good", {name = "big", efforts = ["low", "high"], context_tokens = 128000}]
[endpoint.local.price.good]
input = 1.25
output = 10.0
cached = 0.125
currency = "USD"
date = "2026-11-01"

[endpoint.local.price.big]
input = 2.5
output = 20.0
currency = "USD"
date = "2026-11-01"

[endpoint.free]
url = "http://127.0.0.1:10/v1"
models = ["*", "small"]
"""


def endpoints_file(folder: Path) -> Path:
    """A file with two endpoints: one with prices and a key's variable, one that lists its models itself."""
    path = folder / "endpoints.toml"
    path.write_text(ENDPOINTS, "utf-8")
    return path


def llm_world(world: World, **agent: Any) -> World:
    """The world with a running campaign of a language model on the same slot; needs ``endpoints_file`` in force."""
    choice = {"kind": "openai", "endpoint": "local", "model": "good", "effort": None, "strategy": None, **agent}
    budget = {"rounds": 9, "evaluations": 30, "seconds": 3600.0, "tokens": 5000, "turns": 20, "money": 1.5}
    return world.new_campaign(agent=choice, budget=budget)


def turn(number: int = 1, **changes: Any) -> Turn:
    """A complete turn that queried the log."""
    facts: dict[str, Any] = {
        "round": 1, "attempt": 1, "number": number, "endpoint": "local", "model": "good", "template": "kernel-3",
        "messages": ({"role": "system", "content": "Rules."}, {"role": "user", "content": "Make it faster."}),
        "status": "complete", "cost": 0.0123, "currency": "USD", "latency_s": 4.2,
        "began": "2026-11-30T00:00:00+00:00",
        "answer": Answer(text="First the log.", calls=(ToolCall("c1", "query_log", '{"direction": "tiling"}'),),
                         finish="tool_calls", usage=Usage(input=1200, output=80, cached=400, reasoning=30),
                         model="good-2026"),
        **changes,
    }
    digest = digest_document({"turn": [facts["attempt"], facts.get("sample", 0), number]})
    return Turn(request_digest=facts.pop("request_digest", digest), **facts)


def keep(world: World, *turns: Turn) -> list[AgentTurn]:
    """Store turns."""
    return [turn_keep(campaign=world.campaign, fence=world.fence, document=to_document(one)) for one in turns]


def hostile_turn() -> Turn:
    """A turn in which everything that a model or an endpoint writes is hostile."""
    bad = HOSTILE
    return turn(
        2, model=bad, endpoint="local", template=bad, error=bad, blame="model", status="failed", currency="USD",
        messages=({"role": bad, "content": bad}, {"role": "user", "content": [{"type": "text", "text": bad}]},
                  {"role": "tool", "tool_call_id": "c1", "content": bad}),
        answer=Answer(text=bad * 40, reasoning=bad, refusal=bad, finish=bad, model=bad, dropped=(bad,), calls=(
            ToolCall(bad, bad, bad), ToolCall("c9", "submit_candidate", '{"source": "line\\n<b>x</b>"}'))))
