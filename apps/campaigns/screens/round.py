"""What the page of one round shows."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from apps.campaigns.canary.selectors import drift_windows, in_doubt
from apps.campaigns.choices import CAMPAIGN_ENDED, JobState
from apps.campaigns.models import Campaign, Job, Round
from apps.campaigns.screens.rounds import claim_of, contradiction_of
from apps.campaigns.screens.stepper import stepper_of
from apps.campaigns.screens.transcript import transcript
from apps.campaigns.turns.selectors import turns_of
from apps.core.plotting import to_json
from apps.kernels.models import Kernel
from apps.kernels.plots import distribution
from apps.kernels.screens.verdicts import sheet_of
from apps.reviews.diffing import split_diff


def text_of(kernel: Kernel | None) -> str:
    """The source as text; the bytes were checked to be UTF-8 when a proposal was read, what is not is marked."""
    return "" if kernel is None else bytes(kernel.source).decode("utf-8", "replace")


def round_context(request: HttpRequest, campaign: Campaign, one: Round) -> dict[str, Any]:
    """The round with its verdict, diff against what it was built on, and the agent's account."""
    sheet = sheet_of(one.verdict, goal=campaign.goal, samples=True)
    job = Job.objects.filter(round=one, state__in=(JobState.QUEUED, JobState.LEASED)).first()
    pins: dict[int, list[Any]] = {}
    for finding in findings_of(one.verdict.document if one.verdict else None):
        if finding.get("line"):
            pins.setdefault(finding["line"], []).append({"kind": "finding", **finding})
    diff = None
    if one.kernel is not None:
        diff = split_diff(
            text_of(one.base) if one.base_id != one.kernel_id else text_of(one.kernel),
            text_of(one.kernel),
            new_pins=pins,
        )
    documents = [row.document for row in turns_of(campaign, one.number)]
    numbers = list(Round.objects.filter(campaign=campaign).order_by("number").values_list("number", flat=True))
    place = numbers.index(one.number)
    return {
        "campaign": campaign,
        "round": one,
        "sheet": sheet,
        "profile": sheet.profile if sheet else None,
        "drifted": bool(sheet and sheet.shapes) and in_doubt(
            drift_windows(campaign.slot.hardware.name), one.verdict.created_at if one.verdict else None
        ),
        "stepper": stepper_of(one, job, ended=campaign.state in CAMPAIGN_ENDED),
        "diff": diff,
        "findings": findings_of(one.verdict.document if one.verdict else None),
        "claim": (one.entry or {}).get("agent_claim") or claim_of(one),
        "contradiction": contradiction_of(one.entry or {}),
        "talk": transcript(documents) if documents else None,
        "entry": one.entry or {},
        "previous": numbers[place - 1] if place else None,
        "next": numbers[place + 1] if place + 1 < len(numbers) else None,
        "baseline": one.number == 0,
        "figure": to_json(distribution(sheet.sides, sheet.role_word)) if sheet and sheet.sides else None,
        "stream": None,
    }


def findings_of(document: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Reasons that refused (``block``) and notes to look at, in order of lines."""
    if not document:
        return []
    found = [{"weight": "block", **reason} for reason in document.get("reasons") or ()]
    found += [{"weight": "look", **note} for note in document.get("notes") or ()]
    return sorted(found, key=lambda finding: (finding.get("line") is None, finding.get("line") or 0))
