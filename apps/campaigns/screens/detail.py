"""Everything the campaign page shows, by region: the live regions fetch themselves and need only their share."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from apps.bridge import api
from apps.campaigns import plots
from apps.campaigns.canary.selectors import drift_windows, in_doubt
from apps.campaigns.choices import CAMPAIGN_ENDED, CampaignState, JobState
from apps.campaigns.goal_form import as_toml
from apps.campaigns.jobs.selectors import jobs_ahead, untimed
from apps.campaigns.models import Campaign, Hypothesis, Job, Round
from apps.campaigns.screens.agent import agent_context
from apps.campaigns.screens.budget import budget_of, meters, raisable
from apps.campaigns.screens.facts import fact_rows
from apps.campaigns.screens.rounds import hypothesis_rows, log_rows, points, references, rounds_with_verdicts
from apps.campaigns.screens.stepper import stepper_of
from apps.campaigns.selectors import seconds_running
from apps.core import figures, words
from apps.core.plotting import to_json
from apps.kernels.screens.verdicts import over, over_start, overall_of, sheet_of
from apps.reviews.choices import REQUEST_OPEN
from apps.reviews.models import ReviewRequest, SpotCheck
from apps.stream.selectors import head, last_events
from apps.stream.sentences import sentence
from apps.teams import policies

FEED = 40
SEARCH = "autotune"  # an agent that predicts nothing
TIERS = ("light", "medium", "heavy")
OPTIONS = {
    "finish": ("Accept and finish", "the incumbent stays what it is; where it beats the champion it asks for review"),
    "restructure": ("Restructure within the grant", "one more attempt with another algorithm or data layout"),
    "raise_budget": ("Raise the budget and go on", "the limits that you change below; everything measured stays"),
    "raise_grant": ("Raise the grant", "the agent may change more; the gate then asks for more approvals"),
}


def campaign_context(request: HttpRequest, campaign: Campaign) -> dict[str, Any]:
    """The whole page."""
    rounds = rounds_with_verdicts(campaign)
    slot = campaign.slot
    verdict = campaign.incumbent_verdict
    sheet = sheet_of(verdict, goal=campaign.goal)
    current = current_round(rounds)
    open_jobs = Job.objects.filter(round=current, state__in=(JobState.QUEUED, JobState.LEASED))
    open_job = open_jobs.first() if current else None
    shown = points(rounds, campaign.start_kernel_id)
    lines = references(campaign)
    only = request.GET.get("only") == "accepted"
    log_axis = request.GET.get("axis") == "log"
    document = verdict.document if verdict else None
    ended = campaign.state in CAMPAIGN_ENDED
    windows = drift_windows(slot.hardware.name)
    doubtful = [one.number for one in rounds if one.verdict and in_doubt(windows, one.verdict.created_at)]
    request_open = ReviewRequest.objects.filter(campaign=campaign, state__in=REQUEST_OPEN).first()
    return {
        "campaign": campaign,
        "slot": slot,
        "sheet": sheet,
        "rounds": rounds,
        "ended": list(CAMPAIGN_ENDED),
        "seconds": seconds_running(campaign),
        "meters": meters(campaign, rounds),
        "weights": [
            (name, figures.decimal(value, 1)) for name, value in campaign.goal["objective"]["weights"].items() if value
        ],
        "budget_asks": budget_of(campaign).get("at_limit") == "ask",
        "raisable": raisable(campaign) if "raise_budget" in campaign.options else [],
        "goal_lines": as_toml(campaign.goal),
        "why_not": policies.may_run_campaigns(request.user, campaign.team),
        "why_not_review": policies.may_review(request.user, campaign.team),
        "stepper": stepper_of(current, open_job, ended=ended),
        "jobs_ahead": jobs_ahead(open_job) if open_job else 0,
        "incumbent": {
            "baseline": over_start(overall_of(verdict), verdict.against, campaign.start_kernel_id) if verdict else None,
            "champion": over(document, "champion"),
        },
        "incumbent_round": next((one for one in rounds if verdict and one.verdict_id == verdict.pk), None),
        "dry": rounds_without_gain(campaign, rounds),
        "options": plateau_options(campaign),
        "requests_left": untimed(campaign).values("kernel").distinct().order_by().count() if campaign.dry_run else 0,
        "points": shown,
        "references": lines,
        "log_axis": log_axis,
        "only": only,
        "figure": to_json(
            plots.speed_up(
                shown, lines, noise=sheet.noise if sheet else None, log_axis=log_axis, doubtful=doubtful
            )
        ),
        "doubtful": doubtful,
        "plot_says": plot_sentence(shown, lines),
        "hypotheses": hypothesis_rows(hypotheses_of(campaign), rounds),
        "predicted": predicted_of(campaign, rounds),
        "may_edit_hypotheses": campaign.state == CampaignState.PAUSED
        and policies.may_run_campaigns(request.user, campaign.team) is None,
        "log": [
            row for row in log_rows(rounds) if not only or row.round.comparison == "faster" or row.round.number == 0
        ],
        "request_open": request_open,
        "may_submit": may_submit(campaign) and request_open is None,
        "spot_checks": list(SpotCheck.objects.filter(campaign=campaign).select_related("round", "answered_by")),
        "digest": fact_rows(slot.hardware.facts),
        "event_icons": words.EVENT_ICONS,
        "stream": not ended or None,
        **agent_context(campaign, rounds),
        **feed(request, campaign),
    }


def quick_context(request: HttpRequest, campaign: Campaign) -> dict[str, Any]:
    """What the regions of a language model show: they follow every turn, so nothing else is read."""
    rounds = list(Round.objects.filter(campaign=campaign).order_by("-number").defer("entry", "trace", "proposal"))
    return {
        "campaign": campaign,
        "meters": meters(campaign, rounds),
        "budget_asks": budget_of(campaign).get("at_limit") == "ask",
        "why_not": policies.may_run_campaigns(request.user, campaign.team),
        **agent_context(campaign, rounds),
    }


def predicted_of(campaign: Campaign, rounds: list[Round]) -> api.Predicted | None:
    """Prediction against measurement, oldest round first; ``None`` for a search, which predicts nothing, and while
    nothing was concluded."""
    entries = [one.entry for one in reversed(rounds) if one.entry and one.number]
    if campaign.agent_kind == SEARCH or not entries:
        return None
    found = api.predicted(entries)
    return found if found.rows else None


def may_submit(campaign: Campaign) -> bool:
    """Whether there is something to submit; whether it may be is the gate's to say."""
    return (
        campaign.incumbent_verdict_id is not None
        and campaign.incumbent_id != campaign.start_kernel_id
        and not campaign.dry_run
        and not campaign.imported_from
    )


def hypotheses_of(campaign: Campaign) -> list[Hypothesis]:
    """Ideas by expected gain, who edited them included."""
    return list(Hypothesis.objects.filter(campaign=campaign).select_related("edited_by"))


def current_round(rounds: list[Round]) -> Round | None:
    """The newest round: the one that runs, else the last that ended."""
    return rounds[0] if rounds else None


def feed(request: HttpRequest, campaign: Campaign) -> dict[str, Any]:
    """Events, newest first."""
    last = head(campaign.stream)
    everything = request.GET.get("events") == "all"
    events = last_events(campaign.stream, last if everything else FEED) if last else []
    return {
        "head": last,
        "more_events": last > len(events),
        "events": [
            {"seq": event.seq, "at": event.at, "kind": event.kind, "text": sentence(event.kind, event.data)}
            for event in reversed(events)
        ],
    }


def rounds_without_gain(campaign: Campaign, rounds: list[Round]) -> dict[str, Any]:
    """Conclusive rounds since the last `faster` (``count``), after how many the campaign asks (``asks_after``), and
    what that means now. There may be more than that: the campaign goes on while ideas of one direction only were
    tried or a ranked one is left, and its budget may end first."""
    count = 0
    for one in rounds:
        if one.number == 0 or one.comparison == "faster":
            break
        count += one.comparison in ("slower", "cannot_tell")
    asks_after = campaign.goal.get("stop", {}).get("plateau_rounds", 3)
    if campaign.state in CAMPAIGN_ENDED:
        gained = any(one.comparison == "faster" for one in rounds)
        nothing = "the last measured round was a gain" if gained else "no round was measured against an incumbent"
        says = f"in a row when the campaign {campaign.state}" if count else nothing
    elif campaign.state == CampaignState.PLATEAU:
        says = "in a row; it asks you now"
    elif count < asks_after:
        says = f"in a row; it asks you after {asks_after}"
    else:
        says = "in a row; it asks you when no ranked idea is left"
    return {"count": count, "warn": count >= asks_after, "says": says}


def plateau_options(campaign: Campaign) -> list[dict[str, Any]]:
    """The choices open on a plateau, the default (finish) first; raising the grant is one choice per higher tier."""
    found = []
    for value in campaign.options:
        word, means = OPTIONS.get(value, (value.replace("_", " "), ""))
        if value == "raise_grant":
            higher = TIERS[TIERS.index(campaign.grant) + 1 :]
            found += [
                {"value": f"{value}:{tier}", "word": f"{word} to {tier}", "means": means, "default": False}
                for tier in higher
            ]
        else:
            found.append({"value": value, "word": word, "means": means, "default": value == "finish"})
    return sorted(found, key=lambda option: not option["default"])


def plot_sentence(shown: list[plots.RoundPoint], lines: list[plots.Reference]) -> str:
    """The plot in words, for those who cannot see it."""
    steps = plots.incumbent_steps(shown)
    if not steps:
        return "No round was timed yet."
    number, ratio = steps[-1]
    others = ", ".join(f"{line.label} {figures.ratio(line.ratio)}" for line in lines)
    rounds = figures.counted(len(shown), "round")
    return f"The incumbent stands at {figures.ratio(ratio)} since round {number}, after {rounds}." + (
        f" {others}." if others else ""
    )
