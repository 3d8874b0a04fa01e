"""Several campaigns in one table and one plot (R19, R24)."""

from __future__ import annotations

from django.http import HttpResponse

from apps.campaigns import plots
from apps.campaigns.screens import listing
from apps.core.paging import SignedIn, number_in, page, show
from apps.core.plotting import to_json

MOST = 4


@page
def compare(request: SignedIn) -> HttpResponse:
    """``?ids=3,5``: up to four campaigns side by side; without ids the choice of them."""
    numbers = (number_in(text.strip()) for text in ",".join(request.GET.getlist("ids")).split(","))
    asked = [number for number in numbers if number is not None][:MOST]
    found = {
        row.campaign.pk: row for row in listing.rows(listing.light(request.user).filter(pk__in=asked), history=True)
    }
    rows = [found[pk] for pk in asked if pk in found]
    series = [(f"C-{row.campaign.pk} {row.campaign.agent_kind}", steps(row.history)) for row in rows]
    slots = {row.campaign.slot_id for row in rows}
    classes = {row.environment_class for row in rows if row.environment_class}
    return show(
        request,
        "campaigns/compare.html",
        {
            "rows": rows,
            "figure": to_json(plots.comparison(series)) if any(line for _, line in series) else None,
            "series": [(row, steps(row.history)) for row in rows],
            "same_slot": len(slots) < 2,
            "same_class": len(classes) < 2,
            "others": [row for row in listing.light(request.user)[:100] if row.pk not in found],
            "ids": asked,
        },
    )


def steps(history: list[float]) -> list[tuple[int, float]]:
    """(round, ratio) wherever the incumbent changed."""
    return [(place, value) for place, value in enumerate(history) if place == 0 or value != history[place - 1]]
