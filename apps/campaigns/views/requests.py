"""Requests of a dry run as files: what a GPU host is asked to measure."""

from __future__ import annotations

import zipfile
from io import BytesIO

from django.http import HttpResponse

from apps.bridge.api import BridgeError
from apps.bridge.api.exports import exported_requests
from apps.campaigns.jobs.selectors import requests_untimed
from apps.campaigns.selectors import campaign_for
from apps.core.errors import Invalid, NotFound
from apps.core.paging import SignedIn, page

WRITTEN = (1980, 1, 1, 0, 0, 0)
"""The archive's clock stands still, so that equal requests make equal archives."""


@page
def requests_of_dry_run(request: SignedIn, pk: int) -> HttpResponse:
    """One request document for each kernel that passed here and was not timed."""
    campaign = campaign_for(request.user, pk)
    documents = requests_untimed(campaign)
    if not documents:
        raise NotFound(f"{campaign} has no kernel that passed without being timed: there is nothing to measure on a "
                       "GPU host. Dry runs have such requests once their round 0 is judged.")
    try:
        files = exported_requests(documents)
    except BridgeError as error:
        raise Invalid(error.text, key=error.key, code=error.code) from error
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(f"campaign-{campaign.pk}/requests/{name}", WRITTEN)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED)
    answer = HttpResponse(packed.getvalue(), content_type="application/zip")
    answer["Content-Disposition"] = f'attachment; filename="campaign-{campaign.pk}-requests.zip"'
    return answer
