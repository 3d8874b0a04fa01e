"""What a reviewer weighs beside the figures: what was asked, out of how many this is the best, who had a hand in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from apps.bridge import api
from apps.campaigns.models import Campaign
from apps.core import figures
from apps.kernels.models import Champion
from apps.kernels.screens.sheet import Sheet
from apps.reviews.models import ReviewRequest
from apps.reviews.policies import contributors
from apps.teams.models import User


@dataclass(frozen=True, slots=True)
class Fact:
    """One line: what it is about, the words, and ``warn`` where a reviewer has to look twice."""

    name: str
    text: str
    warn: bool = False


def facts(review: ReviewRequest, sheet: Sheet | None) -> list[Fact]:
    """The lines in the order in which they matter; texts may quote what people wrote and are escaped by the page."""
    campaign = review.campaign
    found = asked(campaign.goal, campaign.started_by.name) if campaign else []
    found += [Fact("Compared with", opponent(review)), library(review, sheet)]
    if campaign:
        found.append(Fact("Tried", tried(campaign)))
    hands = contributors(review)
    names = {person.pk: person.name for person in User.objects.filter(pk__in=hands)}
    found.append(Fact("Contributors", ", ".join(f"{names[pk]} ({why})" for pk, why in hands.items() if pk in names)
                      or "none known"))
    return found


def asked(goal: Mapping[str, Any], author: str) -> list[Fact]:
    """The goal's own words: objective, prohibitions, narrowed parameters, and a loosened tolerance with its reason."""
    weights = (goal.get("objective") or {}).get("weights") or {}
    objective = ", ".join(f"{figures.percent(share, 0)} {name.replace('_', ' ')}" for name, share in weights.items()
                          if share)
    found = [Fact("Objective", objective)] if objective else []
    tolerance = (goal.get("limits") or {}).get("tolerance")
    if tolerance:
        found.insert(0, Fact("Looser error", f"{figures.scientific(tolerance['relative'])} relative instead of the "
                             f"operator’s own bound. {author}: “{tolerance['reason']}”", warn=True))
    if goal.get("adjustable"):
        found.append(Fact("Narrowed to", ", ".join(
            f"{key} {low} to {high}" for key, (low, high) in goal["adjustable"].items())))
    if goal.get("prohibited"):
        found.append(Fact("Not allowed", ", ".join(goal["prohibited"])))
    return found


def opponent(review: ReviewRequest) -> str:
    """Whom the request would replace, and since when that one is champion."""
    if not review.champion_id:
        return "the shipped baseline: the slot had no champion when this was opened"
    now = Champion.objects.filter(slot=review.slot_id, kernel=review.champion_id)
    standing = now.select_related("promotion").first()
    if standing is None:
        return f"{figures.short_digest(review.champion_id)}, champion when this was opened"
    since = figures.clock(standing.since, timezone.localtime())
    tier = standing.promotion.gate_tier
    return f"{figures.short_digest(review.champion_id)}, champion since {since} by a {tier} change"


def library(review: ReviewRequest, sheet: Sheet | None) -> Fact:
    """The fastest library that was measured in this environment class, against the candidate where both are known."""
    rows = api.libraries(review.verdict.environment_class, review.slot.operator.name, review.slot.workload)
    best = next((one for one in rows if one.over_baseline), None)
    if best is None:
        return Fact("Best library", "none was measured in this environment class, so no rule compares with one")
    ours = over_baseline(review, sheet)
    name = f"{best.name} {best.version}".strip()
    if ours is None or best.over_baseline is None:
        return Fact("Best library", f"{name}, {figures.ratio(best.over_baseline)} over the baseline")
    ratio = ours / best.over_baseline
    return Fact("Best library", f"{name}; the candidate is at {figures.ratio(ratio)} of it, both over the baseline, "
                "in sessions of their own", warn=ratio < 1.0)


def over_baseline(review: ReviewRequest, sheet: Sheet | None) -> float | None:
    """The candidate's speed-up over the shipped baseline, measured as such or against an opponent with its bytes."""
    if sheet is None:
        return None
    shipped = api.digest(api.baseline_source(review.slot.operator.name, review.slot.backend))
    for role, one in sheet.overall.items():
        if role == "baseline" or review.verdict.against.get(role) == shipped:
            return one.ratio
    return None


def tried(campaign: Campaign) -> str:
    """Out of how many this one is the best: the best of many is partly luck, which is why it is measured again."""
    rounds = campaign.rounds.filter(number__gt=0)
    timed = rounds.exclude(comparison__in=("", "none")).count()
    total = rounds.count()
    return (f"the best of {figures.counted(timed, 'timed candidate')} in {figures.counted(total, 'round')}; after the "
            "approvals it is measured once more with fresh seeds")
