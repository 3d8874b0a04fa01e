"""Operators: what exactly is computed and judged."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.http import HttpResponse

from apps.bridge import api
from apps.campaigns.models import Campaign
from apps.core.paging import SignedIn, page, show
from apps.imports.selectors import imported_keys
from apps.kernels import selectors
from apps.kernels.models import Slot
from apps.teams.selectors import teams_of


@page
def listing(request: SignedIn) -> HttpResponse:
    """All operators with their slots."""
    slots: dict[int, list[Slot]] = {}
    for slot in selectors.slots_for(request.user):
        slots.setdefault(slot.operator_id, []).append(slot)
    campaigns = Counter(
        Campaign.objects.filter(team__in=teams_of(request.user)).values_list("slot__operator_id", flat=True)
    )
    facts = {one.name: one for one in api.operators()}
    imported = [key for key in imported_keys(request.user) if key.newest]
    rows = [
        {
            "operator": row,
            "facts": facts.get(row.name),
            "slots": slots.get(row.pk, []),
            "campaigns": campaigns.get(row.pk, 0),
            "imported": [key for key in imported if key.operator == row.name],
        }
        for row in selectors.operators()
    ]
    return show(request, "kernels/operators.html", {"rows": rows, "any_imported": bool(imported)})


@page
def operator_page(request: SignedIn, name: str) -> HttpResponse:
    """One operator: contract, tolerances with reasons, workloads, cases, slots."""
    operator = selectors.operator(name)
    facts = api.operator(name)
    slots = list(selectors.slots_for(request.user).filter(operator=operator))
    return show(
        request,
        "kernels/operator.html",
        {
            "operator": operator,
            "facts": facts,
            "slots": slots,
            "imported": imported_keys(request.user, operator=operator),
            "overrides": overrides(request, name),
            "campaigns": Campaign.objects.filter(team__in=teams_of(request.user), slot__operator=operator).count(),
            "shapes": [
                (workload, [(backend, points) for backend, points in workload.shapes.items()])
                for workload in facts.workloads
            ],
            "regimes": sorted(Counter(case["regime"] for case in facts.cases).items()),
        },
    )


def overrides(request: SignedIn, name: str) -> list[dict[str, Any]]:
    """Campaigns whose goal overrides the error bound, with the reason a reviewer reads."""
    rows = Campaign.objects.filter(
        team__in=teams_of(request.user), slot__operator__name=name, goal__limits__tolerance__isnull=False
    ).select_related("started_by")
    return [{"campaign": row, **row.goal["limits"]["tolerance"]} for row in rows if row.goal["limits"]["tolerance"]]
