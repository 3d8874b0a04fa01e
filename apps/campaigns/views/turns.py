"""Turns of a language model as files: one round's as a JSON list, a campaign's as one document a line."""

from __future__ import annotations

import json
from collections.abc import Iterator

from django.http import HttpResponse, StreamingHttpResponse

from apps.campaigns.models import AgentTurn
from apps.campaigns.selectors import campaign_for, round_for
from apps.campaigns.turns.selectors import turns_of
from apps.core.paging import SignedIn, page


@page
def round_turns(request: SignedIn, pk: int, number: int) -> HttpResponse:
    """Every turn of a round as it is stored: keys were taken out before it was."""
    campaign = campaign_for(request.user, pk)
    one = round_for(campaign, number)
    documents = [row.document for row in turns_of(campaign, one.number)]
    answer = HttpResponse(json.dumps(documents, indent=1), content_type="application/json")
    answer["Content-Disposition"] = f'attachment; filename="campaign-{campaign.pk}-round-{one.number}-turns.json"'
    return answer


@page
def campaign_turns(request: SignedIn, pk: int) -> StreamingHttpResponse:
    """All turns of a campaign, one document a line in order: what a replay reads."""
    campaign = campaign_for(request.user, pk)

    def lines() -> Iterator[str]:
        row: AgentTurn
        for row in turns_of(campaign).iterator(chunk_size=50):
            yield row.text + "\n"

    answer = StreamingHttpResponse(lines(), content_type="application/x-ndjson")
    answer["Content-Disposition"] = f'attachment; filename="campaign-{campaign.pk}-turns.jsonl"'
    return answer
