"""One sentence per event for feeds: what happened, with its numbers. Missing figures are left out, never invented."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from apps.core.figures import count, duration, money
from apps.core.untrusted import shown

Data = Mapping[str, Any]
QUOTING = ("campaign.steered",)
"""Events whose ``text`` is what a person said, not a sentence about it."""


def sentence(kind: str, data: Data) -> str:
    """The feed's sentence for an event of ``kind``. A writer's own ``data["text"]`` wins, unless it is a person's."""
    own = data.get("text")
    if isinstance(own, str) and own and kind not in QUOTING:
        return plain(own)
    build = SENTENCES.get(kind)
    return plain(build(data)) if build else kind.replace(".", " ")


def plain(text: str) -> str:
    """Text without code marks: a feed has none, live and stored lines read alike."""
    return shown(text).replace("`", "")


def _round(data: Data) -> str:
    number = data.get("round", data.get("number"))
    return "Round" if number is None else f"Round {number}"


def _ending(data: Data, *keys: str) -> str:
    """``: <first of the values that is there>.`` or just a full stop."""
    said = next((str(data[key]) for key in keys if data.get(key)), "")
    return f": {said.rstrip('.')}." if said else "."


def _by(data: Data) -> str:
    person = data.get("by") or data.get("person") or data.get("actor")
    return f" by {person}" if person else ""


def _verdict(data: Data) -> str:
    outcome = str(data.get("outcome", "")).replace("_", " ")
    overall, role = data.get("overall"), str(data.get("compared_with") or "")
    ratio = overall.get(role) if isinstance(overall, Mapping) else None
    figure = f"{ratio['ratio']:.3f}× over the {role} [{ratio['low']:.3f}, {ratio['high']:.3f}]" if ratio else ""
    comparison = str(data.get("comparison", "none")).replace("_", " ")
    told = ", ".join(part for part in (outcome, figure, "" if comparison == "none" else comparison) if part)
    reason = f" {data['reason']}" if data.get("reason") else ""
    return f"{_round(data)} measured{': ' + told if told else ''}.{reason}"


def _hypotheses(data: Data) -> str:
    stated = data.get("hypotheses", data.get("count"))
    count = len(stated) if isinstance(stated, list) else stated
    if not count:
        return f"{_round(data)}: hypotheses stated."
    return f"{_round(data)}: {count} {'hypothesis' if count == 1 else 'hypotheses'} stated."


def _proposed(data: Data) -> str:
    digest = str(data.get("kernel") or data.get("digest") or "").removeprefix("sha256:")[:8]
    return f"{_round(data)} proposed{' ' + digest if digest else ''}{_ending(data, 'change_summary', 'summary')}"


def _review(word: str) -> Callable[[Data], str]:
    def build(data: Data) -> str:
        request = data.get("request", data.get("review"))
        name = f"R-{request}" if request is not None else "Review"
        return f"{name} {word}{_by(data)}{_ending(data, 'cause', 'reason', 'tier')}"
    return build


TURNS = {"complete": "answered", "failed": "gave no usable answer", "cancelled": "was stopped"}


def _turn(data: Data) -> str:
    who = data.get("model") or "The model"
    sample = f", sample {int(data['sample']) + 1}" if data.get("sample") else ""
    said = f"{_round(data)}: {who} {TURNS.get(str(data.get('status')), 'was asked')} (turn {data.get('number')}{sample}"
    facts = [f"{count(data['tokens'])} tokens"] if data.get("tokens") else []
    if data.get("cost") is not None:
        facts.append(money(data["cost"], str(data.get("currency") or "")))
    if data.get("latency_s"):
        facts.append(duration(data["latency_s"]))
    return f"{said}{''.join(f', {fact}' for fact in facts)}){_ending(data, 'error')}"


STEERED = {"hint": "gave a hint", "forbid": "forbade", "allow": "allowed again",
           "restructure": "asked for a restructuring", "model": "changed the model to"}


def _steered(data: Data) -> str:
    what = STEERED.get(str(data.get("steer") or data.get("kind")), "steered the campaign")
    about = " ".join(str(data[key]) for key in ("direction", "endpoint", "model", "effort") if data.get(key))
    person = data.get("person") or data.get("by") or "Somebody"
    return f"{person} {what}{' ' + about if about else ''}{_ending(data, 'text')}"


DECISIONS = {"approve": "approved", "request_changes": "sent back with changes requested", "reject": "rejected",
             "veto": "vetoed"}


def _decided(data: Data) -> str:
    kind = str(data.get("decision", data.get("kind", "decided")))
    return _review(DECISIONS.get(kind, kind.replace("_", " ")))(
        {key: value for key, value in data.items() if key in ("request", "review", "by", "person", "actor")})


def _campaign(word: str) -> Callable[[Data], str]:
    return lambda data: f"Campaign {word}{_by(data)}{_ending(data, 'cause', 'reason')}"


def _champion(word: str) -> Callable[[Data], str]:
    def build(data: Data) -> str:
        digest = str(data.get("kernel") or "").removeprefix("sha256:")[:8]
        return f"Champion {word}{' ' + digest if digest else ''}{_ending(data, 'reason', 'cause', 'slot')}"
    return build


SENTENCES: dict[str, Callable[[Data], str]] = {
    "campaign.started": _campaign("started"), "campaign.paused": _campaign("paused"),
    "campaign.resumed": _campaign("goes on"), "campaign.plateau": _campaign("waits for a person"),
    "campaign.finished": _campaign("finished"), "campaign.stopped": _campaign("stopped"),
    "campaign.failed": _campaign("failed"),
    "campaign.steered": _steered, "agent.turn": _turn,
    "round.started": lambda data: f"{_round(data)} started.",
    "round.hypotheses": _hypotheses, "round.proposed": _proposed, "round.verdict": _verdict,
    "round.concluded": lambda data: f"{_round(data)} concluded{_ending(data, 'conclusion')}",
    "round.failed": lambda data: f"{_round(data)} failed{_ending(data, 'cause', 'reason')}",
    "round.cancelled": lambda data: f"{_round(data)} cancelled{_ending(data, 'cause', 'reason')}",
    "spotcheck.asked": lambda data: f"Spot check asked for {_round(data).lower()}.",
    "spotcheck.answered": lambda data: f"Spot check of {_round(data).lower()} answered{_by(data)}.",
    "review.opened": _review("opened"), "review.decided": _decided, "review.stale": _review("went STALE"),
    "review.closed": _review("closed"),
    "promotion.started": _review("is verified again before promotion"), "promotion.done": _review("promoted"),
    "promotion.refused": _review("was not promoted"),
    "champion.changed": _champion("is now"), "champion.quarantined": _champion("quarantined"),
    "champion.emptied": _champion("removed"),
    "selftest.passed": lambda data: "The evaluator's self-test passed.",
    "selftest.failed": lambda data: f"The evaluator's self-test failed{_ending(data, 'cause', 'reason')}",
    "canary.drifted": lambda data: f"{data.get('hardware', 'A device')} drifts. Promotions on it wait.",
    "canary.steady": lambda data: f"{data.get('hardware', 'A device')} is steady again.",
    "worker.up": lambda data: f"Worker {data.get('name', 'of this site')} is up.",
    "worker.down": lambda data: f"Worker {data.get('name', 'of this site')} is down{_ending(data, 'cause', 'note')}",
}
