"""The openai agent against servers that were not written here, and against the scripted one: what each did to a
question and to a whole campaign. The baseline is measured once for all campaigns; every candidate is measured afresh.

Run from the repository root: ``python benchmarks/endpoints.py --python /tmp/endpoints/bin/python [--only llmock,...]
[--write FILE]``. Without ``--python`` only the scripted server is tried. ``endpoint_servers.py`` says how that
environment is made. ``--table FILE`` prints what a file holds, as Markdown, and runs nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

from endpoint_cases import Row, ask, baseline_once, campaign, four_at_once
from endpoint_servers import SERVERS, Running, control, running, versions
from table import cpu, print_machine

from harness.agents.llm.limits import Limits
from harness.agents.llm.scripted.personas import PERSONAS
from harness.agents.llm.scripted.server import scripted
from harness.cli.optimize import real_evaluator
from harness.domain.turn import Turn
from harness.domain.vocabulary import Backend
from harness.operators import registry

HEALING: tuple[tuple[str, list[dict[str, Any]], dict[str, Any]], ...] = (
    ("429 twice, Retry-After 1", [{"type": "fail", "status": 429, "retry_after": 1.0, "times": 2}], {}),
    ("503 twice", [{"type": "fail", "status": 503, "times": 2}], {}),
    ("401", [{"type": "fail", "status": 401}], {}), ("400", [{"type": "fail", "status": 400}], {}),
    ("connection dropped", [{"type": "stream_fault", "kind": "disconnect", "after_chunks": 2}], {}),
    ("stream ends early", [{"type": "stream_fault", "kind": "truncate", "after_chunks": 2}], {}),
    ("piece that is no JSON", [{"type": "stream_fault", "kind": "malformed", "after_chunks": 2}], {}),
    ("stall of 30 s", [{"type": "stream_fault", "kind": "stall", "stall_seconds": 30.0}], {"gap_s": 1.0}),
    ("slow first piece", [{"type": "slow_first_token", "seconds": 20.0}], {"first_token_s": 1.0}),
)
LASTING: tuple[tuple[str, list[dict[str, Any]], dict[str, Any]], ...] = (
    ("429, Retry-After an hour", [{"type": "fail", "status": 429, "retry_after": 3600.0}], {}),
    ("500 for ever", [{"type": "fail", "status": 500, "times": 20}], {"patience_s": 4.0}),
    ("stream ends early always", [{"type": "stream_fault", "kind": "truncate", "after_chunks": 2, "times": 9}], {}),
)


def llmock(server: Running, evaluate: Any) -> Iterator[Row]:
    """Faults one by one, other vendors' dialects, and campaigns."""
    name = "llmock"
    control(server.url, "/_llmock/reset", {})
    yield ask(name, "plain", server.url)
    yield ask(name, "plain, Responses API", server.url, api="responses")
    yield ask(name, "eight tools, every parameter", server.url, tools=True,
              parameters={"effort": "low", "temperature": 0.1, "seed": 7, "tool_choice": "auto"})
    yield four_at_once(name, server.url)
    yield from _faults(server, HEALING)
    for kind in ("malformed_arguments", "unknown_tool"):
        control(server.url, "/_llmock/scenario", {"behaviors": [{"type": "tool_fault", "kind": kind}]})
        yield ask(name, kind.replace("_", " "), server.url, tools=True)
    for dialect in ("groq/openai/v1", "mistral/v1", "together/v1", "xai/v1"):
        yield ask(name, f"dialect {dialect.partition('/')[0]}", server.url.removesuffix("v1") + dialect,
                  model=f"{dialect.partition('/')[0]}-model", tools=True)
    verdict = control(server.url, "/_llmock/verdict")
    found = "; ".join(item["title"] for item in verdict["findings"]) or "no finding"
    yield Row(name, "its own verdict on this client", f"{verdict['calls']} calls, {verdict['attempts']} attempts, "
              f"{verdict['faults_injected']} faults", f"{'passed' if verdict['passed'] else 'failed'}: {found}", 0, "-",
              "")
    control(server.url, "/_llmock/reset", {})
    yield from _faults(server, LASTING)
    yield campaign(name, "campaign: random arguments", server.url, evaluate, model="gpt-4o-mini")
    steps = engineer()
    control(server.url, "/_llmock/scenario", {"behaviors": steps.pop(0)})

    def go_on(turn: Turn) -> None:
        if turn.status == "complete" and steps:
            control(server.url, "/_llmock/scenario", {"behaviors": steps.pop(0)})

    yield campaign(name, "campaign: written replies, a fault before each", server.url, evaluate, model="gpt-4o-mini",
                   rounds=1, patience_s=30.0, on_turn=go_on)


def engineer() -> list[list[dict[str, Any]]]:
    """Replies of somebody who knows what to do, each with a fault that it has to get through first. A stream that
    breaks uses its reply up: that one is there twice."""
    source = registry.get("softmax").baseline(Backend.NUMBA).replace('"BLOCK": 16', '"BLOCK": 32')
    ideas = [{"id": f"h{number}", "direction": direction, "function": "_softmax", "text": text, "evidence": "profile",
              "expected_gain": gain} for number, (direction, text, gain) in enumerate((
                  ("tiling", "Wider partial results keep more vector lanes busy.", 0.2),
                  ("fusion", "Keep the exponentials of the second pass.", 0.15),
                  ("launch", "Fewer temporaries in each call.", 0.05)), start=1)]
    candidate = {"hypothesis": "h1", "source": source, "change_summary": "BLOCK 32 instead of 16", "claimed_gain": 0.2,
                 "retry_of": None, "essential_difference": None}

    def reply(name: str, arguments: dict[str, Any], times: int) -> dict[str, Any]:
        return {"type": "reply", "tool_calls": [{"name": name, "arguments": arguments}], "times": times}

    return [[{"type": "fail", "status": 429, "retry_after": 1.0}, reply("query_log", {"direction": None}, 1)],
            [{"type": "stream_fault", "kind": "truncate"}, reply("state_hypotheses", {"hypotheses": ideas}, 2)],
            [{"type": "stream_fault", "kind": "disconnect"}, reply("submit_candidate", candidate, 2)]]


def _faults(server: Running, cases: Any) -> Iterator[Row]:
    """One question for each fault. Faults that it did not use up must not wait for the next one."""
    for case, behaviors, changed in cases:
        control(server.url, "/_llmock/scenario", {"behaviors": behaviors})
        yield ask("llmock", case, server.url, messages=[{"role": "user", "content": case}], **changed)
        control(server.url, "/_llmock/scenario", method="DELETE")


def llmock_chaos(server: Running, evaluate: Any) -> Iterator[Row]:
    """A campaign while the server fails at random."""
    yield campaign("llmock", "campaign: 20 % 429, 15 % 503, streams broken", server.url, evaluate,
                   model="gpt-4o-mini", patience_s=30.0)


def stubllm(server: Running, evaluate: Any) -> Iterator[Row]:
    """Fixed answers."""
    name = "stubllm"
    yield ask(name, "plain", server.url)
    yield ask(name, "tools", server.url, model="reader", tools=True)
    yield ask(name, "429 for ever", server.url, model="limited", patience_s=3.0)
    yield four_at_once(name, server.url)
    yield campaign(name, "campaign: always the same prose", server.url, evaluate, model="mock")
    yield campaign(name, "campaign: reads the log for ever", server.url, evaluate, model="reader")
    yield campaign(name, "campaign: killed after two answers", server.url, evaluate, model="reader", patience_s=2.0,
                   on_turn=lambda turn: server.stop() if turn.number == 2 and turn.status == "complete" else None)


def fakellm(server: Running, evaluate: Any) -> Iterator[Row]:
    """Rules and echoes."""
    name = "fakellm"
    yield ask(name, "plain", server.url)
    yield ask(name, "auto: which API it has", server.url, api="auto")
    yield four_at_once(name, server.url)
    yield campaign(name, "campaign: echoes", server.url, evaluate, model="mock")
    yield campaign(name, "campaign: gives up at once", server.url, evaluate, model="tired")


def llama(server: Running, evaluate: Any) -> Iterator[Row]:
    """A real model of 135 million parameters."""
    name, model = "llama-cpp-python", "SmolLM2-135M-Instruct"
    yield ask(name, "plain", server.url, model=model)
    yield ask(name, "stopped while it answers", server.url, model=model, parameters={"max_tokens": 400}, stop_after=5,
              messages=[{"role": "user", "content": "Tell me a long story about a compiler."}])
    yield ask(name, "longer than its context", server.url, model=model,
              messages=[{"role": "user", "content": "many words " * 6000}])
    yield campaign(name, f"campaign: {model}", server.url, evaluate, model=model, rounds=1,
                   limits=Limits(turns=5, answer_tokens=120), first_token_s=600.0, answer_s=900.0)


def personas(names: list[str], evaluate: Any) -> Iterator[Row]:
    """The scripted server: each persona through a campaign."""
    with scripted() as server:
        for persona in (PERSONAS[name] for name in names):
            good = persona.name in ("good", "truncating")
            yield campaign("scripted", persona.name, server.url, evaluate, model=persona.name,
                           rounds=2 if persona.name == "slow" else 6 if good else 4, grant="heavy")


def rows(python: Path | None, only: list[str], played: list[str], evaluate: Any) -> Iterator[Row]:
    """Everything that was asked for, one row at a time."""
    tries = {"llmock": llmock, "stubllm": stubllm, "fakellm": fakellm, "llama-cpp-python": llama}
    with tempfile.TemporaryDirectory() as folder:
        for name, tried in tries.items():
            if python is not None and name in only:
                with running(python, SERVERS[name], Path(folder)) as server:
                    yield from tried(server, evaluate)
        if python is not None and "llmock" in only:
            chaos = ("--error-rate", "429=0.2", "--error-rate", "503=0.15", "--stream-fault", "truncate=0.15",
                     "--stream-fault", "malformed=0.1")
            with running(python, SERVERS["llmock"], Path(folder), *chaos) as server:
                yield from llmock_chaos(server, evaluate)
    if "scripted" in only:
        yield from personas(played, evaluate)


def markdown(document: dict[str, Any]) -> str:
    """The results as a table."""
    lines = ["| server | persona or case | what happened | outcome | turns | tokens | blame |",
             "| --- | --- | --- | --- | --- | --- | --- |"]
    for row in document["rows"]:
        cells = [str(row[key]).replace("|", "/").replace("\n", " ") for key in
                 ("server", "persona", "happened", "outcome", "turns", "tokens", "blame")]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", f"{document['machine']}; {'; '.join(document['versions'])}; {document['date']}."])


def main() -> None:
    """Try, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=Path, help="the interpreter of the environment with the other servers")
    parser.add_argument("--only", default=",".join([*SERVERS, "scripted"]), help="servers, comma-separated")
    parser.add_argument("--personas", default=",".join(PERSONAS), help="which the scripted server plays")
    parser.add_argument("--write", type=Path, help="write the rows as JSON; other rows in it are kept")
    parser.add_argument("--table", type=Path, help="print what a file holds")
    options = parser.parse_args()
    if options.table:
        print(markdown(json.loads(options.table.read_text("utf-8"))))
        return
    only = options.only.split(",")
    told = [] if options.python is None else [versions(options.python, SERVERS[name]) for name in only
                                              if name in SERVERS]
    made: list[dict[str, Any]] = []
    played = options.personas.split(",")
    for row in rows(options.python, only, played, baseline_once(real_evaluator(lambda *_: None))):
        made.append(row.document())
        print(json.dumps(made[-1]), flush=True)
        if options.write:
            _write(options.write, made, told)
    print_machine("openai", "numba")


def _write(path: Path, made: list[dict[str, Any]], told: list[str]) -> None:
    from datetime import UTC, datetime

    tried = {(row["server"], row["persona"]) for row in made}
    old = json.loads(path.read_text("utf-8")) if path.exists() else {"rows": [], "versions": []}
    kept = [row for row in old["rows"] if (row["server"], row["persona"]) not in tried]
    document = {"version": 1, "machine": cpu(), "date": datetime.now(UTC).date().isoformat(),
                "versions": sorted({*old["versions"], *told, *_ours()}), "rows": [*kept, *made]}
    path.write_text(json.dumps(document, indent=1) + "\n", "utf-8")


def _ours() -> list[str]:
    import importlib.metadata

    return [f"openai {importlib.metadata.version('openai')}"]


if __name__ == "__main__":
    main()
