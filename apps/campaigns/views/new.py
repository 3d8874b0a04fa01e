"""A new campaign: the goal form, its live preview, and making the draft."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from apps.bridge import api
from apps.campaigns import goal_form, model_choice, services
from apps.campaigns.jobs.devices import devices_served, is_dry
from apps.campaigns.models import Campaign
from apps.campaigns.screens.facts import fact_rows
from apps.campaigns.selectors import campaign_for
from apps.core.current_team import current_team
from apps.core.errors import AppError, Invalid, NotFound
from apps.core.paging import SignedIn, number_in, page, see_other
from apps.kernels.models import Hardware, Kernel
from apps.kernels.selectors import kernel_for
from apps.teams import policies
from apps.teams.models import Team


def operator_asked(name: str) -> Any:
    """The operator by name, the first one by default."""
    known = {facts.name: facts for facts in api.operators()}
    return known.get(name) or next(iter(known.values()))


def choices(facts: Any, backend: str) -> dict[str, list[Any]]:
    """What the selects offer for an operator and backend."""
    hardware = [row for row in Hardware.objects.all() if not row.backends or backend in row.backends]
    return {
        "operators": list(api.operators()),
        "backends": list(facts.backends),
        "hardware": hardware,
        "workloads": [one for one in facts.workloads if backend in one.shapes],
    }


def pick(given: str, offered: list[str], default: str = "") -> str:
    """``given`` where it is offered, else the default where that is, else the first."""
    return next((one for one in (given, default) if one in offered), offered[0] if offered else "")


def form_of(request: SignedIn) -> tuple[Any, goal_form.GoalForm, dict[str, list[Any]]]:
    """The form as posted, or a fresh one from the address: operator, backend, ``from`` another campaign, a preset."""
    data: QueryDict = request.POST if request.method == "POST" else request.GET
    source = origin_of(request)
    asked = data.get("operator") or (source.goal["operator"] if source else "")
    facts = operator_asked(asked)
    backend = pick(data.get("backend") or (source.goal["backend"] if source else "numba"), list(facts.backends))
    offered = choices(facts, backend)
    named = [row.name for row in offered["hardware"]]
    usual = default_hardware(backend, named)
    hardware = pick(data.get("hardware") or (source.goal["hardware"] if source else ""), named or [usual], usual)
    workload = pick(data.get("workload", ""), [one.name for one in offered["workloads"]])
    if request.method == "POST":
        posted = request.POST.copy()
        posted["backend"], posted["hardware"], posted["workload"] = backend, hardware, workload
        if "refresh" in posted:  # another operator declares other parameters
            posted = QueryDict(urlencode([pair for pair in pairs_of(posted) if not pair[0].startswith("adjustable.")]))
        return facts, read(posted, facts), offered
    if source is not None and source.goal["operator"] == facts.name and source.goal["backend"] == backend:
        form = goal_form.from_document(source.goal, facts)
    else:
        form = goal_form.start_values(facts, backend, hardware, workload)
    form.values |= goal_form.PRESETS.get(data.get("preset", ""), {})
    form.values["name"] = ""
    model_choice.preselect(form, model_choice.endpoints())
    return facts, check(form, facts), offered


def read(posted: QueryDict, facts: Any) -> goal_form.GoalForm:
    """The form as posted. Another endpoint or model was chosen: what it does not have gives way to its first."""
    here = model_choice.endpoints()
    form = goal_form.read(posted, facts)
    if "refresh" in posted:
        before = dict(form.values)
        model_choice.preselect(form, here)
        if form.values != before:
            form = check(form, facts)
    model_choice.check(form, here)
    return form


def pairs_of(posted: QueryDict) -> list[tuple[str, str]]:
    """Every name and value, in order."""
    return [(name, str(value)) for name, values in posted.lists() for value in values]


def check(form: goal_form.GoalForm, facts: Any) -> goal_form.GoalForm:
    """The fresh form, checked like a posted one."""
    posted = QueryDict(mutable=True)
    posted.update(form.values)
    posted.setlist("prohibited", form.prohibited)
    fresh = goal_form.read(posted, facts)
    model_choice.check(fresh, model_choice.endpoints())
    return fresh


def default_hardware(backend: str, offered: list[str]) -> str:
    """This machine's own device for numba; for triton the GPU that a worker here has, else the usual target of dry
    runs, as on the command line."""
    here = api.hardware_here()
    if backend == "numba":
        return here
    return next((name for name in devices_served() if name != here and name in offered), api.compile_targets()[0])


def origin_of(request: SignedIn) -> Campaign | None:
    """The campaign to start from, if one is named and visible."""
    text = request.POST.get("from") or request.GET.get("from") or ""
    number = number_in(text)
    return campaign_for(request.user, number) if number is not None else None


def kernel_of(request: SignedIn) -> Kernel | None:
    """The kernel to start from instead of the baseline or the incumbent."""
    text = request.POST.get("kernel") or request.GET.get("kernel") or ""
    return kernel_for(request.user, text) if text else None


def context(request: SignedIn, team: Team | None) -> dict[str, Any]:
    """Everything form and preview show."""
    facts, form, offered = form_of(request)
    hardware = next((row for row in offered["hardware"] if row.name == form.values["hardware"]), None)
    return {
        "facts": facts,
        "form": form,
        "offered": offered,
        "origin": origin_of(request),
        "kernel": kernel_of(request),
        "tunables": [
            (
                one,
                form.values.get(f"adjustable.{one['key']}.low") or one["low"],
                form.values.get(f"adjustable.{one['key']}.high") or one["high"],
            )
            for one in goal_form.tunables_of(facts, form.values["backend"])
        ],
        "llm": model_choice.choice_of(form, model_choice.endpoints()),
        "optional_prohibitions": goal_form.OPTIONAL_PROHIBITIONS,
        "dry": is_dry(form.values["hardware"], form.values["backend"]),
        "device": fact_rows(hardware.facts) if hardware else [],
        "lines": goal_form.as_toml(form.document),
        "bad_keys": set(form.errors),
        "team": team,
        "why_not": policies.may_run_campaigns(request.user, team) if team else "You are in no team yet.",
        "stream": None,
    }


@page
@require_http_methods(["GET", "POST"])
def new_campaign(request: SignedIn) -> HttpResponse:
    """The form; a valid POST makes the draft and starts it unless only a draft was asked for."""
    team = current_team(request)
    shown = context(request, team)
    if request.method == "GET" or "refresh" in request.POST:
        return render(request, "campaigns/new.html", shown)
    if team is None:
        raise NotFound("You are in no team yet; a maintainer can add you.")
    if not shown["form"].valid:
        return render(request, "campaigns/new.html", shown, status=422)
    try:
        made = make(request, team, shown)
    except Invalid as error:
        shown["form"].errors[goal_form.field_of(error.key)] = error.text
        return render(request, "campaigns/new.html", shown, status=422)
    except AppError as error:
        messages.error(request, error.text, extra_tags=error.code)
        return render(request, "campaigns/new.html", shown, status=error.status)
    return see_other(reverse("campaign", args=[made.pk]))


def make(request: SignedIn, team: Team, shown: dict[str, Any]) -> Campaign:
    """Create the campaign or the fork, and start it."""
    goal, name = shown["form"].document, shown["form"].values.get("name", "")
    if shown["origin"] is not None:
        made = services.campaign_fork(
            campaign=shown["origin"], person=request.user, goal=goal, kernel=shown["kernel"], name=name
        )
    else:
        made = services.campaign_create(
            team=team, person=request.user, goal=goal, name=name, start_kernel=shown["kernel"]
        )
    if "draft" in request.POST:
        messages.success(request, "Saved as a draft. Start it when you are ready.")
        return made
    services.campaign_start(campaign=made, person=request.user)
    return made


@page
@require_http_methods(["POST"])
def preview(request: SignedIn) -> HttpResponse:
    """Only the preview, for the form as typed; the page fetches it as the reader types."""
    return render(request, "campaigns/parts/preview.html", context(request, current_team(request)))
