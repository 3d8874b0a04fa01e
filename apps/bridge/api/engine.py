"""The engine's fold over a campaign's results, as plain values for rows and pages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from apps.bridge.api.errors import BridgeError, translated


@dataclass(frozen=True, slots=True)
class RoundFacts:
    """One round as the fold sees it. ``entry`` is the log entry's document once concluded."""

    number: int
    state: str
    bounces: tuple[dict[str, str], ...]
    hypothesis: dict[str, Any] | None
    direction: str
    change_summary: str
    source: str | None
    kernel: str | None
    base: str | None
    step_tier: str
    outcome: str
    comparison: str
    conclusion: str
    cause: str
    entry: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """Where a campaign stands after its results. ``options`` are open on a plateau; hypotheses are documents.

    ``agent`` and ``budget`` are documents where people changed them, else ``None``; ``forbidden`` and ``steering`` are
    documents too, ``queued`` is how many alternatives wait for a round of theirs.
    """

    state: str
    code: str
    cause: str
    options: tuple[str, ...]
    grant: str
    baseline_measured: bool
    incumbent: str
    incumbent_round: int
    tokens: int
    seconds: float
    rounds: tuple[RoundFacts, ...]
    hypotheses: tuple[dict[str, Any], ...]
    tried_hypotheses: frozenset[str]
    money: float = 0.0
    turns: int = 0
    agent: dict[str, Any] | None = None
    budget: dict[str, Any] | None = None
    forbidden: tuple[dict[str, str], ...] = ()
    steering: tuple[dict[str, Any], ...] = ()
    queued: int = 0


def engine_start(goal: dict[str, Any], source: bytes, operator_version: str) -> dict[str, Any]:
    """The start document that ``engine_fold`` needs, from a campaign's goal and the kernel of round 0."""
    from apps.bridge.api.sources import digest, normal_digest, read_source

    return {
        "goal": goal, "baseline": {"digest": digest(source), "source": read_source(source)},
        "baseline_normal": normal_digest(source), "operator_version": operator_version,
    }


def engine_state(start: dict[str, Any], results: Iterable[dict[str, Any]]) -> Any:
    """The engine's own state object (opaque to apps; the runner asks it for the next action).

    Raises:
        BridgeError: a result cannot follow from the state before it.
    """
    with translated():
        from harness.domain.goal import goal_from_document
        from harness.domain.request import SourceRef
        from harness.engine.results import result_from_document
        from harness.engine.state import CampaignState
        from harness.engine.step import replay

        baseline = SourceRef(start["baseline"]["digest"], start["baseline"]["source"])
        fresh = CampaignState.start(
            goal_from_document(start["goal"]), baseline, start["baseline_normal"], start["operator_version"]
        )
        return replay(fresh, (result_from_document(document) for document in results))


def engine_fold(start: dict[str, Any], results: Iterable[dict[str, Any]]) -> EngineFacts:
    """Fold results and say where the campaign stands.

    Raises:
        BridgeError: a result cannot follow from the state before it.
    """
    return facts_of(engine_state(start, results))


def facts_of(state: Any) -> EngineFacts:
    """The plain facts of an engine state."""
    from harness.domain.codec import to_document
    from harness.engine import rules
    from harness.engine.log import log_entries

    entries = {entry.round: to_document(entry) for entry in log_entries(state)}
    options = rules.plateau_options(state, state.plateau) if state.plateau is not None else ()
    return EngineFacts(
        state=str(state.status), code=str(state.code), cause=state.cause,
        options=tuple(str(option) for option in options), grant=str(state.grant),
        baseline_measured=state.baseline_verdict is not None,
        incumbent=state.incumbent.kernel.digest, incumbent_round=state.incumbent.round,
        tokens=state.tokens, seconds=state.seconds,
        rounds=tuple(_round(record, entries.get(record.number)) for record in state.rounds),
        hypotheses=tuple(to_document(list(state.hypotheses))),
        tried_hypotheses=frozenset(r.hypothesis.id for r in state.concluded if r.hypothesis is not None),
        money=state.money, turns=state.turns,
        agent=None if state.agent is None else to_document(state.agent),
        budget=None if state.budget is None else to_document(state.budget),
        forbidden=tuple({"direction": name, "person": person} for name, person in state.forbidden),
        steering=tuple(to_document(list(state.steering))), queued=len(state.queued),
    )


def _round(record: Any, entry: dict[str, Any] | None) -> RoundFacts:
    from harness.domain.codec import to_document

    verdict, candidate = record.verdict, record.candidate
    return RoundFacts(
        number=record.number, state=str(record.status),
        bounces=tuple({"code": b.code, "text": b.text} for b in record.bounces),
        hypothesis=to_document(record.hypothesis) if record.hypothesis else None,
        direction=record.direction or "", change_summary=candidate.change_summary if candidate else "",
        source=candidate.source if candidate else None, kernel=record.kernel.digest if record.kernel else None,
        base=record.opponent, step_tier=str(verdict.step_tier) if verdict and verdict.step_tier else "",
        outcome=str(verdict.outcome) if verdict else "", comparison=str(verdict.comparison) if verdict else "",
        conclusion=str(record.conclusion) if record.conclusion else "", cause=record.fault, entry=entry,
    )


def log_columns() -> tuple[str, ...]:
    """Keys of a log entry in the order of the contract."""
    from harness.domain.log import LOG_COLUMNS

    return LOG_COLUMNS


def engine_result(kind: str, /, **data: Any) -> dict[str, Any]:
    """A result document, checked: ``engine_result("Paused", reason="...", person="...")``.

    Raises:
        BridgeError: unknown kind or wrong data.
    """
    with translated():
        from harness.engine.results import result_from_document, result_to_document

        return result_to_document(result_from_document({"kind": kind, "data": data}))


def evaluated_result(round_number: int, verdict_document: dict[str, Any]) -> dict[str, Any]:
    """``BaselineMeasured`` (round 0) or ``Evaluated`` from a stored verdict document."""
    with translated():
        from harness.domain.codec import from_document
        from harness.domain.verdict import Verdict
        from harness.engine.results import BaselineMeasured, Evaluated, result_to_document, summary_of

        summary = summary_of(from_document(verdict_document, Verdict))
        return result_to_document(BaselineMeasured(summary) if round_number == 0 else Evaluated(round_number, summary))


__all__ = ["BridgeError", "EngineFacts", "RoundFacts", "engine_fold", "engine_result", "engine_start", "engine_state",
           "evaluated_result", "facts_of", "log_columns"]
