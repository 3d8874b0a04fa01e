"""The experiment log in words, within a budget of tokens. What is told is what was measured; a claim stands beside it
and is called contradicted where the data disagree."""

from __future__ import annotations

from collections.abc import Sequence

from harness.agents.llm.data import tokens_of
from harness.agents.protocol import AgentContext
from harness.domain.log import LogEntry
from harness.domain.vocabulary import Conclusion
from harness.domain.words import one_line

LENGTHS = (400, 160, 60)
"""Characters of a hypothesis or a summary: whole, shorter and shortest rows."""
MOST_IDEAS = 12


def log_rows(entries: Sequence[LogEntry], budget: int) -> str:
    """The rows that fit ``budget`` tokens, oldest first: shorter rows before fewer ones, the newest kept longest. What
    is left out is said. Never longer than the budget, nothing at all where not even that sentence fits."""
    for kept in LENGTHS:
        text = "\n".join(row(entry, kept) for entry in entries)
        if tokens_of(text) <= budget:
            return text
    short = [row(entry, LENGTHS[-1]) for entry in entries]
    for first in range(1, len(short) + 1):
        said = f"({first} earlier rounds are left out here: query_log with a direction shows them.)"
        text = "\n".join([said, *short[first:]])
        if tokens_of(text) <= budget:
            return text
    return ""


def row(entry: LogEntry, kept: int) -> str:
    """One round on one line."""
    parts = [f"round {entry.round} [{entry.direction}] {_measured(entry)}"]
    parts.append(f"hypothesis: {_words(entry.hypothesis, kept)}")
    if entry.change_summary:
        parts.append(f"change: {_words(entry.change_summary, kept)}")
    if entry.agent_claim is not None and entry.agent_claim.gain is not None:
        contradicted = " - CONTRADICTED by the measurement" if entry.claim_contradicted else ""
        parts.append(f"claimed {entry.agent_claim.gain:+.0%}{contradicted}")
    if entry.do_not_repeat:
        parts.append("DO NOT REPEAT: the direction is closed")
    return " | ".join(parts)


def _words(text: str, kept: int) -> str:
    """An agent's words as one field of a row: they cannot begin another one, which would read as measured."""
    return one_line(text, kept).replace("|", "/")


def _measured(entry: LogEntry) -> str:
    tier = f"{entry.step_tier} change, " if entry.step_tier is not None else ""
    if entry.conclusion is Conclusion.FAILED:
        return f"{tier}refused: {entry.outcome}"
    change = entry.performance_change
    if change is None:
        return f"{tier}{entry.outcome}, not timed"
    word = {Conclusion.CONFIRMED: "faster", Conclusion.REFUTED: "slower"}.get(entry.conclusion, "cannot tell")
    return f"{tier}{word}: measured {change.ratio:.3f}x the incumbent's speed ({change.low:.3f} to {change.high:.3f})"


def standing(context: AgentContext) -> str:
    """What is closed, spent and open now."""
    lines = [f"Incumbent: round {context.incumbent_round}. Grant: {context.grant}."]
    for direction, rounds in context.closed_directions.items():
        lines.append(f"Closed direction {direction} (rounds {', '.join(map(str, rounds))}): switch to another one.")
    if context.closed_directions:
        lines.append("The campaign's one retry of a closed direction is "
                     + ("still available (retry_of and essential_difference)." if context.retry_available else "used."))
    for direction, person in context.forbidden.items():
        lines.append(f"Direction {direction} was forbidden by {one_line(person, 80) or 'a person'}: it is bounced.")
    shown = context.open_hypotheses[:MOST_IDEAS]
    ideas = [f"{h.id} [{h.direction}:{h.function}] {h.expected_gain:+.0%}" for h in shown]
    lines.append(f"Open hypotheses, best first: {'; '.join(ideas) or 'none'}.")
    if context.struck:
        lines.append(f"Struck by a person, not to be proposed again: {', '.join(context.struck)}.")
    return "\n".join(lines)
