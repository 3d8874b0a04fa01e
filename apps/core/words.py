"""The state vocabulary: every state word with its icon and tone. The word alone must be enough."""

from __future__ import annotations

from typing import NamedTuple


class Mark(NamedTuple):
    """What a badge shows: an icon of the sprite, the word, and the tone class ('' is neutral)."""

    icon: str
    word: str
    tone: str


UNKNOWN = Mark("dot", "unknown", "")

OUTCOMES = {
    "passed": Mark("check", "passed", "ok"),
    "incorrect_shape": Mark("cross", "incorrect shape", "bad"),
    "incorrect_dtype": Mark("cross", "incorrect dtype", "bad"),
    "incorrect_numeric": Mark("cross", "incorrect numeric", "bad"),
    "incorrect_nan": Mark("cross", "incorrect nan", "bad"),
    "incorrect_nondeterministic": Mark("cross", "incorrect nondeterministic", "bad"),
    "out_of_bounds": Mark("ban", "out of bounds", "bad"),
    "compile_error": Mark("code", "compile error", "bad"),
    "resource_infeasible": Mark("ban", "resource infeasible", "bad"),
    "over_limit": Mark("gauge", "over limit", "bad"),
    "runtime_error": Mark("bolt", "runtime error", "bad"),
    "timeout": Mark("clock", "timeout", "bad"),
    "policy_violation": Mark("shield", "policy violation", "bad"),
    "reward_hack": Mark("flag", "reward hack", "bad"),
    "grant_exceeded": Mark("up-r", "grant exceeded", "bad"),
    "no_change": Mark("zero", "no change", ""),
    "duplicate": Mark("copy", "duplicate", ""),
    "unsupported": Mark("dash", "unsupported", ""),
    "unsupported_here": Mark("dash", "unsupported here", ""),
    "invalid_reference": Mark("book", "invalid reference", "warn"),
    "infra_error": Mark("server", "infra error", "warn"),
}

COMPARISONS = {
    "faster": Mark("faster", "faster", "ok"),
    "slower": Mark("slower", "slower", "bad"),
    "cannot_tell": Mark("same", "cannot tell", ""),
    "none": Mark("dash", "not timed", ""),
    "alone": Mark("dash", "not compared", ""),  # timed, with nothing beside it
    "suspicious": Mark("alert", "suspicious win", "warn"),
}

BLAMES = {
    "candidate": Mark("code", "candidate", ""),
    "reference": Mark("book", "reference", ""),
    "infrastructure": Mark("server", "infrastructure, not charged", ""),
    "policy": Mark("shield", "policy", ""),
}

CAMPAIGN_STATES = {
    "draft": Mark("dot", "draft", ""),
    "running": Mark("run", "running", "info"),
    "paused": Mark("pause", "paused", ""),
    "plateau": Mark("person", "waits for a person", "warn"),
    "finished": Mark("check", "finished", "ok"),
    "stopped": Mark("stop", "stopped", ""),
    "failed": Mark("cross", "failed", "bad"),
}

ROUND_STATES = {
    "thinking": Mark("agent", "agent thinks", "info"),
    "awaited": Mark("agent", "outside agent awaited", ""),
    "evaluating": Mark("run", "evaluating", "info"),
    "concluded": Mark("check", "concluded", ""),
    "failed": Mark("server", "failed", "warn"),
    "cancelled": Mark("stop", "cancelled", ""),
}

JOB_STATES = {
    "queued": Mark("clock", "queued", ""),
    "leased": Mark("run", "running", "info"),
    "succeeded": Mark("check", "succeeded", "ok"),
    "failed": Mark("cross", "refused", "bad"),
    "errored": Mark("server", "errored", "warn"),
    "cancelled": Mark("stop", "cancelled", ""),
}

CONCLUSIONS = {
    "confirmed": Mark("check", "confirmed", "ok"),
    "refuted": Mark("ban", "refuted", "bad"),
    "inconclusive": Mark("same", "inconclusive", ""),
    "failed": Mark("cross", "failed", "bad"),
}

REVIEW_STATES = {
    "open": Mark("eye", "open", "info"),
    "changes_requested": Mark("undo", "changes requested", "warn"),
    "approved": Mark("check", "approved", "ok"),
    "rejected": Mark("ban", "rejected", "bad"),
    "vetoed": Mark("ban", "vetoed", "bad"),
    "withdrawn": Mark("dash", "withdrawn", ""),
    "stale": Mark("stale", "STALE", "stale"),
    "verifying": Mark("clock", "verifying", "info"),
    "promoted": Mark("star", "promoted", "ok"),
    "closed": Mark("dash", "closed", ""),
}

DECISIONS = {
    "approve": Mark("check", "approved", "ok"),
    "request_changes": Mark("undo", "changes requested", "warn"),
    "reject": Mark("ban", "rejected", "bad"),
    "veto": Mark("ban", "vetoed", "bad"),
}

REQUIREMENTS = {
    "met": Mark("check", "met", "ok"),
    "not_met": Mark("lock", "not met", "warn"),
    "not_applicable": Mark("dash", "not applicable", ""),
    "error": Mark("alert", "error, so not met", "bad"),
}

FINDINGS = {
    "block": Mark("ban", "block", "bad"),
    "look": Mark("eye", "look", "warn"),
    "note": Mark("info", "note", "info"),
}

SLOT_STATES = {
    "empty": Mark("dash", "no champion", ""),
    "champion": Mark("star", "champion", "ok"),
    "quarantined": Mark("flag", "quarantined", "bad"),
    "reverifying": Mark("clock", "re-verifying", "info"),
}

WORKER_STATES = {
    "up": Mark("check", "up", "ok"),
    "idle": Mark("check", "idle", "ok"),
    "busy": Mark("run", "busy", "info"),
    "draining": Mark("pause", "draining", "warn"),
    "down": Mark("server", "down", "bad"),
}

CHECKS = {
    "ok": Mark("check", "passed", "ok"),
    "note": Mark("info", "note", "info"),
    "warning": Mark("alert", "warning", "warn"),
    "error": Mark("ban", "error", "bad"),
}

TURN_STATES = {
    "open": Mark("run", "asking", "info"),
    "complete": Mark("check", "answered", ""),
    "failed": Mark("alert", "no usable answer", "warn"),
    "cancelled": Mark("stop", "stopped by a person", ""),
}

VOCABULARY: dict[str, dict[str, Mark]] = {
    "outcome": OUTCOMES,
    "comparison": COMPARISONS,
    "blame": BLAMES,
    "campaign": CAMPAIGN_STATES,
    "round": ROUND_STATES,
    "job": JOB_STATES,
    "conclusion": CONCLUSIONS,
    "review": REVIEW_STATES,
    "decision": DECISIONS,
    "requirement": REQUIREMENTS,
    "finding": FINDINGS,
    "slot": SLOT_STATES,
    "worker": WORKER_STATES,
    "check": CHECKS,
    "turn": TURN_STATES,
}

EVENT_ICONS = {
    "campaign.started": ("play", ""),
    "campaign.paused": ("pause", "t-warn"),
    "campaign.resumed": ("play", ""),
    "campaign.plateau": ("person", "t-warn"),
    "campaign.finished": ("check", "t-ok"),
    "campaign.stopped": ("stop", ""),
    "campaign.failed": ("cross", "t-bad"),
    "campaign.steered": ("person", ""),
    "round.started": ("run", ""),
    "round.hypotheses": ("bulb", ""),
    "round.proposed": ("agent", ""),
    "agent.turn": ("agent", ""),
    "round.verdict": ("gauge", ""),
    "round.concluded": ("dot", ""),
    "round.failed": ("server", "t-warn"),
    "round.cancelled": ("stop", ""),
    "spotcheck.asked": ("eye", ""),
    "spotcheck.answered": ("check", "t-ok"),
    "review.opened": ("person", ""),
    "review.decided": ("check", ""),
    "review.stale": ("stale", "t-warn"),
    "review.closed": ("dash", ""),
    "promotion.started": ("clock", ""),
    "promotion.done": ("star", "t-ok"),
    "promotion.refused": ("ban", "t-bad"),
    "champion.changed": ("star", "t-ok"),
    "champion.quarantined": ("flag", "t-bad"),
    "champion.emptied": ("dash", ""),
    "selftest.passed": ("shield", "t-ok"),
    "selftest.failed": ("shield", "t-bad"),
    "canary.drifted": ("wave", "t-bad"),
    "canary.steady": ("wave", "t-ok"),
    "worker.up": ("server", "t-ok"),
    "worker.down": ("server", "t-warn"),
}


def mark(kind: str, value: object) -> Mark:
    """The mark of a state; an unknown value shows its own word, neutral, so that nothing is hidden."""
    text = "" if value is None else str(value)
    found = VOCABULARY[kind].get(text)
    return found or UNKNOWN._replace(word=text.replace("_", " ") or UNKNOWN.word)
