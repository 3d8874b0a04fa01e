"""Turns of a language model as files: one round's as a JSON list, a campaign's as one document a line, and as a folder
to play again."""

from __future__ import annotations

import json
import zipfile
from io import BytesIO

from django.conf import settings
from django.http import HttpResponse

from apps.bridge.api.replay import replay_files
from apps.campaigns.selectors import campaign_for, round_for
from apps.campaigns.services import results_of
from apps.campaigns.turns.selectors import turns_of
from apps.core.errors import NotFound
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
def campaign_turns(request: SignedIn, pk: int) -> HttpResponse:
    """All turns of a campaign, one document a line in order."""
    campaign = campaign_for(request.user, pk)
    lines = [text + "\n" for text in turns_of(campaign).values_list("text", flat=True)]
    answer = HttpResponse("".join(lines), content_type="application/x-ndjson")
    answer["Content-Disposition"] = f'attachment; filename="campaign-{campaign.pk}-turns.jsonl"'
    return answer


@page
def replay(request: SignedIn, pk: int) -> HttpResponse:
    """The campaign as a folder that ``python -m harness replay`` plays again without a network."""
    campaign = campaign_for(request.user, pk)
    if campaign.start_kernel is None or not turns_of(campaign).exists():
        raise NotFound(f"{campaign} has no turn of a language model to play again.")
    files = replay_files(
        goal=campaign.goal, baseline=bytes(campaign.start_kernel.source), results=results_of(campaign),
        turns=turns_of(campaign).values_list("text", flat=True), endpoints=settings.ENDPOINTS_PATH,
    )
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(f"campaign-{campaign.pk}/{name}", data)
    answer = HttpResponse(packed.getvalue(), content_type="application/zip")
    answer["Content-Disposition"] = f'attachment; filename="campaign-{campaign.pk}-replay.zip"'
    return answer
