"""What is tried with each server: single questions with one fault each, and whole campaigns on numba."""

from __future__ import annotations

import collections
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from typing import Any

from harness.agents.llm.agent import LanguageModel
from harness.agents.llm.endpoints import Endpoint, ModelFacts
from harness.agents.llm.limits import Limits
from harness.agents.llm.ports import Desk, Question, TransportError
from harness.agents.llm.tools import functions
from harness.agents.llm.wire.learned import Memory
from harness.agents.llm.wire.transport import OpenAITransport
from harness.campaign.goal_options import Options, goal_of
from harness.campaign.local import Evaluator, run_campaign
from harness.campaign.model_turns import HeldTurns
from harness.campaign.start import start_state
from harness.domain.goal import AgentChoice
from harness.domain.log import LogEntry
from harness.domain.request import EvaluationRequest
from harness.domain.turn import Turn, Usage
from harness.engine.log import log_entries

MESSAGES = [{"role": "system", "content": "You are terse."}, {"role": "user", "content": "Say hello."}]
KEY = {"BENCHMARK_KEY": "sentinel-key-of-the-benchmark"}


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. ``blame`` counts turns without use by whose fault they are."""

    server: str
    persona: str
    happened: str
    outcome: str
    turns: int
    tokens: str
    blame: str

    def document(self) -> dict[str, Any]:
        """For the results file."""
        return asdict(self)


def endpoint(url: str, **changed: Any) -> Endpoint:
    """An endpoint with little patience: a benchmark is not a night's campaign."""
    plain = Endpoint("server", url, "BENCHMARK_KEY", (ModelFacts("*", 8192),), first_token_s=300.0, gap_s=60.0,
                     patience_s=8.0)
    return replace(plain, **changed)


def ask(server: str, case: str, url: str, *, model: str = "gpt-4o-mini", tools: bool = False,
        parameters: Mapping[str, Any] | None = None, messages: Any = MESSAGES,
        stop_after: int | None = None, **changed: Any) -> Row:
    """One question, whatever comes of it. ``stop_after``: a person stops it after so many pieces."""
    transport = OpenAITransport(endpoint(url, **changed), KEY, memory=Memory())
    deltas: list[str] = []
    question = Question(model, messages, functions() if tools else (), {"max_tokens": 40, **(parameters or {})})
    began = time.monotonic()
    try:
        answer = transport.ask(question, told=lambda delta: deltas.append(delta.text),
                               cancelled=lambda: stop_after is not None and len(deltas) >= stop_after)
    except TransportError as error:
        outcome = f"{error.kind}: {error.text}"[:160]
        tries = f"{error.retries + 1} tries" if error.retries else "one try"
        return Row(server, case, f"{tries} in {time.monotonic() - began:.1f} s, {len(deltas)} pieces", outcome, 0,
                   tokens_of(error.partial.usage) if error.partial else "0",
                   "" if error.kind == "cancelled" else error.blame)
    calls = ", ".join(f"{call.name}({call.arguments[:30]})" for call in answer.calls)
    said = f"'{answer.text[:30]}'" if answer.text else calls or answer.refusal[:60] or "nothing"
    left = f"; left out: {', '.join(answer.dropped)}" if answer.dropped else ""
    return Row(server, case, f"{len(deltas)} pieces in {time.monotonic() - began:.1f} s{left}",
               f"{answer.finish or 'no reason given'}: {said}", 1, tokens_of(answer.usage), "")


def four_at_once(server: str, url: str, **options: Any) -> Row:
    """Four questions from four threads through two places."""
    with ThreadPoolExecutor(4) as pool:
        rows = list(pool.map(lambda _: ask(server, "", url, parallel=2, **options), range(4)))
    return Row(server, "four questions at once, two places", "; ".join(sorted({row.happened.split(" in ")[0]
                                                                              for row in rows})),
               f"{sum(row.turns for row in rows)} of 4 answered", sum(row.turns for row in rows), "-", "")


def tokens_of(usage: Usage) -> str:
    """Tokens, and whether they are the server's own count."""
    return f"{usage.total:,}" + (" (estimated)" if usage.estimated else "")


def baseline_once(evaluate: Evaluator) -> Evaluator:
    """Judges every candidate afresh, but an operator's baseline only once: it is the same kernel in each campaign."""
    known: dict[str, Any] = {}

    def judge(request: EvaluationRequest) -> Any:
        if request.against:
            return evaluate(request)
        if request.candidate.digest not in known:
            result = evaluate(request)
            if not result[0].passed:
                return result
            known[request.candidate.digest] = result
        return known[request.candidate.digest]

    return judge


def campaign(server: str, persona: str, url: str, evaluate: Evaluator, *, model: str, rounds: int = 2,
             grant: str = "medium", operator: str = "softmax", limits: Limits | None = None,
             on_turn: Callable[[Turn], None] = lambda turn: None, **changed: Any) -> Row:
    """One unattended campaign to its end, whatever the model does."""
    place = endpoint(url, **changed)
    turns = _Watched(on_turn)
    transport = OpenAITransport(place, KEY, memory=Memory())
    desk = Desk(lambda name: transport, turns, facts=lambda name, which: place.facts(which))
    goal, _ = goal_of(None, Options(operator=operator, backend="numba", hardware=None, workload=None, agent="playbook",
                                    strategy=None, grant=grant, rounds=rounds, seconds=None))
    goal = replace(goal, agent=AgentChoice("openai", endpoint="server", model=model))
    began = time.monotonic()
    state = run_campaign(start_state(goal, attended=False), LanguageModel(desk, limits), evaluate)
    seconds = time.monotonic() - began
    kept = [turn for number in range(1, rounds + 2) for turn in turns.stored(number)]
    paid = [turn.answer.usage for turn in kept if turn.answer is not None]
    total = sum(usage.total for usage in paid)
    guessed = " (estimated)" if any(usage.estimated for usage in paid) else ""
    blamed = collections.Counter(str(turn.blame) for turn in kept if turn.blame)
    kernels = [_kernel(entry) for entry in log_entries(state)]
    return Row(server, persona, f"{_happened(kept)}; kernels: {', '.join(kernels) or 'none'}",
               f"{state.status} ({state.code or 'no code'}) after {len(state.concluded)} rounds, {seconds:.0f} s",
               len(kept), f"{total:,}{guessed}",
               ", ".join(f"{who} {number}" for who, number in sorted(blamed.items())) or "none")


def _kernel(entry: LogEntry) -> str:
    """One round of the log: its tier, what came out, and whether it was claimed otherwise."""
    if entry.step_tier is None:
        return f"round {entry.round} brought none"
    change = entry.performance_change
    measured = f" {change.ratio:.2f}x {entry.conclusion}" if change is not None else ""
    claim = f", claim of {entry.agent_claim.gain:+.0%} contradicted" \
        if entry.claim_contradicted and entry.agent_claim and entry.agent_claim.gain is not None else ""
    return f"{entry.step_tier} {entry.outcome}{measured}{claim}"


def _happened(turns: list[Turn]) -> str:
    """The commonest faults of turns in their own words."""
    faults = collections.Counter(turn.error.split(". ")[0].split(":")[0][:70] for turn in turns if turn.error)
    useful = sum(not turn.error for turn in turns)
    return "; ".join([f"{useful} turns of use", *(f"{number} x {text}" for text, number in faults.most_common(3))])


class _Watched(HeldTurns):
    def __init__(self, on_turn: Callable[[Turn], None]) -> None:
        super().__init__()
        self._on_turn = on_turn

    def keep(self, turn: Turn) -> None:
        super().keep(turn)
        self._on_turn(turn)
