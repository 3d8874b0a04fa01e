"""The experiment log as a file."""

from __future__ import annotations

import csv
import json

from django.http import Http404, HttpResponse

from apps.campaigns.selectors import campaign_for, log_of
from apps.core.paging import SignedIn, page
from apps.core.spreadsheet import cell

COLUMNS = (
    "round",
    "direction",
    "hypothesis",
    "expected_gain",
    "change_summary",
    "step_tier",
    "outcome",
    "performance_change",
    "limits_passed",
    "conclusion",
    "agent_claim",
    "claim_contradicted",
    "do_not_repeat",
)


@page
def export(request: SignedIn, pk: int, form: str) -> HttpResponse:
    """The log with its fixed columns, as JSON or CSV."""
    campaign = campaign_for(request.user, pk)
    entries = log_of(campaign)
    if form == "json":
        answer = HttpResponse(json.dumps(entries, ensure_ascii=False, indent=1), content_type="application/json")
    elif form == "csv":
        answer = HttpResponse(content_type="text/csv; charset=utf-8")
        writer = csv.writer(answer)
        writer.writerow(COLUMNS)
        writer.writerows([cell(entry.get(name)) for name in COLUMNS] for entry in entries)
    else:
        raise Http404(f"The log is there as log.csv and log.json, not as log.{form}.")
    answer["Content-Disposition"] = f'attachment; filename="campaign-{campaign.pk}-log.{form}"'
    return answer
