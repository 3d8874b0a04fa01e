"""From what the prompt and the tools told to the context that the playbook needs. Whatever cannot be read is left
unknown: a scripted engineer makes do with less, as a model would."""

from __future__ import annotations

import re
from dataclasses import replace

from harness.agents.llm.scripted.conversation import Conversation
from harness.agents.playbook.agent import Ready, playable
from harness.agents.profile import Profile, profile_of
from harness.agents.protocol import AgentContext, AskPurpose, LogBook
from harness.domain.digest import digest_source
from harness.domain.goal import Goal
from harness.domain.request import SourceRef
from harness.domain.vocabulary import Backend, Tier
from harness.evaluation.source.normal_form import normal_digest
from harness.operators.registry import get

GOAL = re.compile(r"^Make (\w+) \((\w+)\) faster on (\S+), workload (\w+)\.", re.MULTILINE)
GRANT = re.compile(r"^The grant is (\w+):", re.MULTILINE)
CLOSED = re.compile(r"^Closed direction (\S+) \(rounds ([\d, ]+)\)", re.MULTILINE)
FORBIDDEN = re.compile(r"^Direction (\S+) was forbidden", re.MULTILINE)
SHARE = re.compile(r"^- (.+?) \(weight [^)]*\): .*?(\d+)% of the roof", re.MULTILINE)
OPEN = re.compile(r"(?:best first: |; )([A-Za-z0-9_.-]+) \[[^\]]+\]")
SHOWN = 48
"""Characters of a summary that stand in every row of the log, however short it is made."""


def context_of(conversation: Conversation, source: str) -> AgentContext | None:
    """The context as far as it was told, ``None`` where the task is not one of this project's."""
    task = conversation.task
    goal, grant = GOAL.search(task), GRANT.search(task)
    if goal is None or grant is None:
        return None
    spec, backend, tier = get(goal[1]), Backend(goal[2]), Tier(grant[1])
    kernel = SourceRef(digest_source(source), source)
    closed = {found[1]: tuple(map(int, re.findall(r"\d+", found[2]))) for found in CLOSED.finditer(task)}
    return AgentContext(
        goal=Goal(goal[1], backend, goal[3], goal[4], grant=tier), spec=spec, grant=tier, round=conversation.round,
        purpose=purpose_of(task), log=LogBook(), baseline=kernel, incumbent=kernel,
        incumbent_round=conversation.number(r"Incumbent: round (\d+)", 0), incumbent_normal=normal_digest(source),
        baseline_verdict=None, incumbent_verdict=None,
        profile=_profile(conversation, profile_of(spec, backend, goal[4], None, source)), closed_directions=closed)


def purpose_of(task: str) -> AskPurpose:
    """What is asked for."""
    if re.search(r"^Round \d+ is the diagnosis", task, re.MULTILINE):
        return "diagnosis"
    return "restructure" if re.search(r"^Round \d+ asks for a restructuring", task, re.MULTILINE) else "candidate"


def untried(conversation: Conversation, context: AgentContext) -> list[Ready]:
    """Strategies that can be played now and that the log does not show, best prediction first."""
    step = conversation.last("query_log")
    log = " ".join(((step.result if step else "") + conversation.task).split())
    forbidden = set(FORBIDDEN.findall(conversation.task))
    return [item for item in playable(context)
            if " ".join(item.move.summary.split())[:SHOWN] not in log
            and not {item.move.direction_key, str(item.move.direction)} & forbidden]


def open_ids(conversation: Conversation) -> set[str]:
    """Hypotheses that were stated and not tried yet."""
    line = re.search(r"^Open hypotheses, best first: .*$", conversation.task, re.MULTILINE)
    return set(OPEN.findall(line[0])) if line else set()


def _profile(conversation: Conversation, profile: Profile) -> Profile:
    """The profile with the roof shares that ``read_profile`` showed."""
    step = conversation.last("read_profile")
    shares = {found[1]: int(found[2]) / 100 for found in SHARE.finditer(step.result)} if step else {}
    known = [(shape.weight, shares[shape.shape]) for shape in profile.shapes if shape.shape in shares]
    total = sum(weight for weight, _ in known)
    if not total:
        return profile
    shapes = tuple(replace(shape, roof_share=shares.get(shape.shape)) for shape in profile.shapes)
    share = sum(weight * value for weight, value in known) / total
    return replace(profile, shapes=shapes, roof_share=share, bound="memory" if share >= 0.7 else "instructions")
