"""May promotions happen now? Devices, workers, isolation proved, self-test, doctor."""

from __future__ import annotations

import uuid

from django.db.models import Q
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST

from apps.campaigns.canary.selectors import bases
from apps.campaigns.canary.services import canary_rebase
from apps.campaigns.jobs import workers
from apps.campaigns.jobs.selftest_orders import selftest_order
from apps.campaigns.models import Job, Worker
from apps.core.current_team import current_team
from apps.core.errors import NotFound
from apps.core.paging import SignedIn, act, page, show
from apps.core.screens.system import system_context
from apps.teams.selectors import teams_of


@page
def system(request: SignedIn) -> HttpResponse:
    """The whole page."""
    return show(
        request,
        "core/system.html",
        system_context(request, current_team(request)),
        {
            "workers": "core/parts/workers.html",
            "endpoints": "core/parts/endpoints.html",
            "canary": "core/parts/canary.html",
        },
    )


@page
@require_POST
def drain(request: SignedIn, pk: int) -> HttpResponse:
    """Let a worker end what it does and take nothing new, or take work again."""
    worker = Worker.objects.filter(pk=pk).first()
    if worker is None:
        raise NotFound("There is no such worker.")
    draining = request.POST.get("draining") == "yes"
    done = f"{worker.name} takes nothing new." if draining else f"{worker.name} takes work again."
    return act(
        request,
        done,
        lambda: workers.worker_drain(worker=worker, person=request.user, team=current_team(request), draining=draining),
        to=reverse("system"),
    )


@page
@require_POST
def requeue(request: SignedIn, pk: uuid.UUID) -> HttpResponse:
    """Put an errored job back into the queue."""
    job = Job.objects.filter(Q(team__isnull=True) | Q(team__in=teams_of(request.user)), pk=pk).first()
    if job is None:
        raise NotFound("There is no such job.")
    return act(
        request,
        "The job is in the queue again.",
        lambda: workers.job_requeue(job=job, person=request.user),
        to=reverse("system"),
    )


@page
@require_POST
def order_selftest(request: SignedIn, pk: int) -> HttpResponse:
    """Run the self-test on a worker's device again: the quick subset or the whole corpus."""
    worker = Worker.objects.filter(pk=pk, kind="evalworker").first()
    if worker is None:
        raise NotFound("There is no such evaluation worker.")
    quick = request.POST.get("quick") != "no"
    return act(
        request,
        f"The {'quick subset' if quick else 'whole corpus'} is ordered for {worker.hardware}; it runs as soon as "
        "nobody waits for the device.",
        lambda: selftest_order(worker=worker, quick=quick, person=request.user, team=current_team(request)),
        to=reverse("system") + "#selftest",
    )


@page
@require_POST
def rebase(request: SignedIn, pk: int) -> HttpResponse:
    """Begin a new reference for a device's canary."""
    base = bases().filter(pk=pk).first()
    if base is None:
        raise NotFound("There is no such baseline.")
    return act(
        request,
        f"A new reference begins for {base}.",
        lambda: canary_rebase(
            base=base, person=request.user, team=current_team(request), reason=request.POST.get("reason", "")
        ),
        to=reverse("system") + "#canary-h",
    )
