"""A good engineer: reads everything, ranks hypotheses, plays the book's best move, gives up when it is empty."""

from __future__ import annotations

import re
from dataclasses import dataclass

from harness.agents.llm.scripted.conversation import Conversation, Said, called
from harness.agents.llm.scripted.reading import context_of, open_ids, purpose_of, untried
from harness.agents.playbook.agent import LEAST, Ready, diverse
from harness.agents.protocol import AgentContext

RADICAL = ("algorithm", "layout")


@dataclass(frozen=True, slots=True)
class Plan:
    """What a good engineer would do: the moves in order, the first of them under the name it was stated with."""

    context: AgentContext
    moves: tuple[Ready, ...]
    identity: str
    stated: bool


def good(conversation: Conversation) -> Said:
    """The next answer of a good engineer."""
    first = reads(conversation)
    if first is not None:
        return first
    plan = plan_of(conversation)
    if plan is None:
        return give_up("No strategy that is allowed, open and untried is left.")
    if not plan.stated:
        return state(conversation, plan)
    ready = plan.moves[0]
    return submit(plan.identity, ready.source, ready.move.summary, ready.hypothesis.expected_gain)


def reads(conversation: Conversation) -> Said | None:
    """The calls that come before any proposal, ``None`` once their results are there."""
    wanted = [called("query_log", direction=None), called("read_profile", shape=None),
              called("read_source", which="incumbent", round=None)]
    done = {step.name for step in conversation.steps if not step.refused}
    missing = tuple(call for call in wanted if call[0] not in done)
    tried = {step.name for step in conversation.steps}
    # A tool that keeps failing is not asked for ever.
    if not missing or {name for name, _ in missing} <= tried:
        return None
    return Said(calls=missing, reasoning="First I look at what was measured.")


def plan_of(conversation: Conversation) -> Plan | None:
    """The moves that are left, ``None`` where none is or where the kernel was not shown."""
    source = conversation.source("incumbent")
    context = context_of(conversation, source) if source else None
    if context is None:
        return None
    refused = {step.arguments.get("source") for step in conversation.steps
               if step.name == "submit_candidate" and step.refused}
    moves = [item for item in untried(conversation, context) if item.source not in refused]
    diagnosis = context.purpose == "diagnosis"
    if diagnosis:
        moves = diverse(moves)
        if len(moves) < LEAST:
            return None
    elif context.purpose == "restructure":
        moves = sorted(moves, key=lambda item: str(item.move.direction) not in RADICAL)
    # Engineers who answer at the same time each take another move.
    moves = moves if diagnosis else moves[conversation.number(r"you are number (\d+)", 1) - 1:]
    if not moves:
        return None
    identity = name_of(conversation, moves[0])
    step = conversation.last("state_hypotheses")
    here = [item["id"] for item in step.arguments.get("hypotheses", ())] if step else []
    known = open_ids(conversation) if context.purpose == "candidate" else set()
    # The diagnosis begins with the best: once that is refused, the list is stated anew without it.
    return Plan(context, tuple(moves), identity, here[:1] == [identity] if diagnosis else identity in {*here, *known})


def name_of(conversation: Conversation, ready: Ready) -> str:
    """The id of a move's hypothesis: as it was stated, or a new one of this round."""
    plain = re.sub(r"[^A-Za-z0-9_.-]", "-", ready.hypothesis.id).lstrip("_.-")[:18]
    if purpose_of(conversation.task) == "diagnosis" or plain in open_ids(conversation):
        return plain
    return f"{plain}.r{conversation.round}"


def state(conversation: Conversation, plan: Plan) -> Said:
    """The hypotheses, best first."""
    listed = plan.moves if plan.context.purpose == "diagnosis" else plan.moves[:1]
    ideas = [{"id": name_of(conversation, item), "direction": str(item.move.direction), "function": item.move.function,
              "text": item.hypothesis.text[:1200], "evidence": item.hypothesis.evidence,
              "expected_gain": max(0.001, item.hypothesis.expected_gain)} for item in listed]
    return Said(calls=(called("state_hypotheses", hypotheses=ideas),),
                reasoning=f"The profile says: {plan.context.profile.text}.")


def submit(identity: str, source: str, summary: str, gain: float | None) -> Said:
    """One candidate."""
    return Said(calls=(called("submit_candidate", hypothesis=identity, source=source, change_summary=summary[:600],
                              claimed_gain=gain, retry_of=None, essential_difference=None),))


def give_up(reason: str) -> Said:
    """The end of a campaign as the engineer sees it."""
    return Said(calls=(called("give_up", reason=reason),))
