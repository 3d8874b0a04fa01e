"""What people do with a campaign: every action is a POST that a service decides on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import Http404, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST

from apps.campaigns import services
from apps.campaigns.choices import BUDGET_LIMITS, PlateauChoice
from apps.campaigns.goal_form import WHOLE
from apps.campaigns.models import Campaign
from apps.campaigns.selectors import campaign_for, hypotheses_of
from apps.core.errors import Invalid, NotFound
from apps.core.paging import SignedIn, act, page
from apps.reviews import services as reviews
from apps.reviews.models import SpotCheck
from apps.teams.selectors import teams_of

Action = Callable[[SignedIn, Campaign], Any]
MOST_GAIN = 1000.0
"""A hypothesis that promises more, as a fraction, is a slip of the hand."""


def choose(request: SignedIn, campaign: Campaign) -> None:
    """An option of the plateau; raising the grant names the tier after a colon, raising the budget the new limits."""
    choice, _, grant = request.POST.get("choice", "").partition(":")
    budget = raised(request, campaign) if choice == PlateauChoice.RAISE_BUDGET else None
    services.plateau_choose(campaign=campaign, person=request.user, choice=choice, grant=grant or None, budget=budget)


def raised(request: SignedIn, campaign: Campaign) -> dict[str, Any]:
    """The limits as typed, those that changed. An emptied field is no limit of that kind.

    Raises:
        Invalid: something typed is no number, or nothing was changed.
    """
    present = campaign.budget or campaign.goal["budget"]
    found: dict[str, Any] = {}
    for name in BUDGET_LIMITS:
        typed = request.POST.get(f"budget.{name}")
        if typed is None:
            continue
        text = typed.replace("\u202f", "").replace(" ", "").replace(",", ".")
        try:
            value: float | int | None = None if not text else (int(text) if name in WHOLE else float(text))
        except ValueError as error:
            raise Invalid(f"'{typed}' is not a number of {name}. Nothing was changed.", key=f"budget.{name}") from error
        if value != present.get(name):
            found[name] = value
    if not found:
        raise Invalid("No limit was changed, so the budget is as spent as before. Raise the one that is at its end.",
                      key="budget")
    return found


def steer(request: SignedIn, campaign: Campaign) -> None:
    """A hint, a direction forbidden or allowed, a restructuring, or another model: ``choice`` is endpoint, model and
    effort apart by a tab."""
    said = request.POST
    endpoint, model, effort = [*said.get("choice", "").split("\t"), "", "", ""][:3]
    services.campaign_steer(
        campaign=campaign, person=request.user, kind=said.get("kind", ""), text=said.get("text", "").strip(),
        direction=said.get("direction", ""), endpoint=endpoint, model=model, effort=effort,
    )


def edit_hypotheses(request: SignedIn, campaign: Campaign) -> None:
    """Strike and reword what is untried; everything else stays as it was."""
    struck = set(request.POST.getlist("strike"))
    kept = []
    for row in hypotheses_of(campaign).exclude(state="struck"):
        if row.key in struck:
            continue
        gain = row.expected_gain
        typed = request.POST.get(f"gain.{row.key}", "").replace(",", ".").strip()
        if typed:
            gain = _per_cent(typed, f"gain.{row.key}")
        kept.append(
            {
                "id": row.key,
                "direction": row.direction,
                "function": row.function,
                "evidence": row.evidence,
                "text": request.POST.get(f"text.{row.key}", row.text).strip() or row.text,
                "expected_gain": gain,
            }
        )
    services.hypotheses_edit(campaign=campaign, person=request.user, hypotheses=kept)


def _per_cent(typed: str, key: str) -> float:
    """A typed gain as a fraction. Nothing loses all of its speed, and nothing gains without end."""
    try:
        gain = float(typed) / 100
    except ValueError as error:
        raise Invalid(f"'{typed}' is not a number of per cent. Nothing was changed.", key=key) from error
    if not -1.0 < gain < MOST_GAIN:
        raise Invalid(f"{typed} per cent is no gain: it lies above -100 and below {100 * MOST_GAIN:.0f} per cent. "
                      "Nothing was changed.", key=key)
    return gain


def submit(request: SignedIn, campaign: Campaign) -> None:
    """Ask for a review of the incumbent."""
    verdict = reviews.verdict_to_review(campaign)
    reviews.review_open(
        campaign=campaign,
        kernel=verdict.kernel,
        verdict=verdict,
        person=request.user,
        because=request.POST.get("because", "").strip() or f"{request.user.name} submitted it",
    )


ACTIONS: dict[str, tuple[str, Action]] = {
    "start": (
        "Started: round 0 measures the baseline first.",
        lambda request, row: services.campaign_start(campaign=row, person=request.user),
    ),
    "pause": (
        "Paused. What is being measured may end; nothing new begins.",
        lambda request, row: services.campaign_pause(
            campaign=row, person=request.user, reason=request.POST.get("reason", "")
        ),
    ),
    "resume": (
        "The campaign goes on.",
        lambda request, row: services.campaign_resume(campaign=row, person=request.user),
    ),
    "stop": (
        "Stopped. Everything measured stays.",
        lambda request, row: services.campaign_stop(
            campaign=row, person=request.user, reason=request.POST.get("reason", "")
        ),
    ),
    "submit": ("The incumbent asks for review.", submit),
    "choose": ("Your choice is recorded.", choose),
    "steer": ("Said: the agent gets it with its next question.", steer),
    "stop-answer": (
        "The answer is stopped and the campaign is paused. Nothing is counted; resume to ask again.",
        lambda request, row: services.answer_stop(campaign=row, person=request.user),
    ),
    "hypotheses": ("The hypotheses are saved.", edit_hypotheses),
}


@page
@require_POST
def act_on(request: SignedIn, pk: int, action: str) -> HttpResponse:
    """Run one of the actions and go back to the page."""
    if action not in ACTIONS:
        raise Http404(f"There is no action '{action}'.")
    campaign = campaign_for(request.user, pk)
    done, run = ACTIONS[action]
    return act(request, done, lambda: run(request, campaign), to=reverse("campaign", args=[pk]))


@page
@require_POST
def answer_spot_check(request: SignedIn, pk: int) -> HttpResponse:
    """A reviewer's answer to a spot check."""
    check = (
        SpotCheck.objects.select_related("campaign").filter(pk=pk, campaign__team__in=teams_of(request.user)).first()
    )
    if check is None:
        raise NotFound("There is no such spot check in your teams.")
    return act(
        request,
        "The spot check is answered.",
        lambda: reviews.spot_check_answer(
            check=check,
            person=request.user,
            concern=bool(request.POST.get("concern")),
            comment=request.POST.get("comment", ""),
        ),
        to=reverse("campaign", args=[check.campaign_id]),
    )
