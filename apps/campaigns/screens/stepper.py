"""The stage stepper: every stage with its own clock, of the job that runs or of the last verdict."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from apps.campaigns.choices import JobState, RoundState
from apps.campaigns.models import Job, Round
from apps.core import figures
from apps.kernels.screens.sheet import STAGES, sheet

ROUND_OPEN = (RoundState.THINKING, RoundState.EVALUATING)
OUTSIDE = "mcp"
AWAITED = "awaited"
ICONS = {"done": "check", "on": "run", "fail": "cross", "skipped": "dash", "": "dot"}


@dataclass(frozen=True, slots=True)
class Step:
    """One stage: ``state`` is ``done``, ``on``, ``fail``, ``skipped`` or ``''`` (to come); ``clock`` its own words."""

    name: str
    state: str
    clock: str

    @property
    def icon(self) -> str:
        """The symbol in the circle."""
        return ICONS[self.state]

    @property
    def css(self) -> str:
        """The class of the stylesheet."""
        return "opt" if self.state == "skipped" else self.state


@dataclass(frozen=True, slots=True)
class Stepper:
    """The stages of one round; ``open`` while it has not ended, so that progress of it may come."""

    round: Round
    job: Job | None
    steps: list[Step]
    open: bool

    @property
    def state(self) -> str:
        """The round's state as the page says it."""
        return shown_state(self.round)


def stepper_of(one: Round | None, job: Job | None, *, ended: bool = False) -> Stepper | None:
    """Steps of a round: thinking, then the stages of its job, or those of its verdict once it is there.

    ``job`` is the campaign's open one and counts only where it belongs to this round (verifications do not);
    ``ended`` says that the campaign has ended, so nothing of it runs any more.
    """
    if one is None:
        return None
    running = one.state in ROUND_OPEN and not ended
    mine = job if job is not None and job.round_id == one.pk and running else None
    thinks = running and thinking(one)
    clock = figures.duration(figures.age_seconds(one.state_since)) if thinks else ""
    outside = one.campaign.agent_kind == OUTSIDE
    name, clock = ("outside agent", f"awaited, {clock}" if thinks else "") if outside else ("agent thinks", clock)
    first = [Step(name, "on" if thinks else "done", clock)] if one.number else []
    if mine is not None and mine.state in (JobState.QUEUED, JobState.LEASED):
        steps = job_steps(mine)  # measured anew: what an attempt before it reached is past
    elif one.verdict is not None:
        steps = verdict_steps(one)
    else:
        steps = [Step(name, "", "" if running else "not reached") for name in STAGES]
    return Stepper(one, mine, [*first, *steps], running)


def thinking(one: Round) -> bool:
    """Whether an agent works on it now. Round 0 measures what is there already: nobody thinks in it."""
    return one.state == RoundState.THINKING and one.number > 0


def shown_state(one: Round) -> str:
    """The state as pages say it: an open round 0 is evaluated from its start, and an agent from outside is waited for:
    what it does meanwhile nobody here knows."""
    if one.state != RoundState.THINKING:
        return str(one.state)
    if not one.number:
        return str(RoundState.EVALUATING)
    return AWAITED if one.campaign.agent_kind == OUTSIDE else str(RoundState.THINKING)


def verdict_steps(one: Round) -> list[Step]:
    """Stages with the seconds that the verdict recorded."""
    assert one.verdict is not None
    steps = []
    for row in sheet(one.verdict.document).stages:
        clock = (
            figures.duration(row.seconds) if row.seconds is not None else ("not reached" if row.state == "" else "off")
        )
        steps.append(Step(row.name, row.state, clock))
    return steps


def job_steps(job: Job) -> list[Step]:
    """Stages of a job in progress; the running one shows its count and how long it runs."""
    clocks = {row["stage"]: row for row in job.stages}
    now = job.progress.get("stage") if job.state == JobState.LEASED else None
    steps = []
    reached = list(STAGES).index(now) if now in STAGES else -1
    for place, name in enumerate(STAGES):
        seconds = elapsed(clocks.get(name))
        if place < reached:
            steps.append(Step(name, "done", figures.duration(seconds) if seconds is not None else ""))
        elif place == reached:
            done, total = job.progress.get("done"), job.progress.get("total")
            count = f"{done}/{total}, " if total else ""
            steps.append(Step(name, "on", count + (figures.duration(seconds) if seconds is not None else "")))
        else:
            steps.append(Step(name, "", "next" if place == reached + 1 and reached >= 0 else ""))
    return steps


def elapsed(row: dict[str, str] | None) -> float | None:
    """Seconds between start and end, or until now."""
    if not row or not row.get("started_at"):
        return None
    start = datetime.fromisoformat(row["started_at"])
    end = datetime.fromisoformat(row["ended_at"]) if row.get("ended_at") else timezone.now()
    return (end - start).total_seconds()
