"""The jump box: C-3, R-2, V-17, digests, operator names."""

from __future__ import annotations

import re

from django.contrib import messages
from django.http import HttpResponse
from django.urls import reverse

from apps.core.errors import NotFound
from apps.core.paging import SignedIn, page, see_other
from apps.kernels import selectors
from apps.kernels.models import Hardware, Operator

NUMBERED = {"c": "campaign", "r": "review", "v": "verdict"}


@page
def jump(request: SignedIn) -> HttpResponse:
    """Go to what was typed; what is unknown says so and stays where it was asked."""
    asked = request.GET.get("q", "").strip()
    numbered = re.fullmatch(r"([crv])-?(\d{1,9})(?:\s*(?:r|round\s*)(\d{1,6}))?", asked.lower())
    if numbered:
        letter, number, round_number = numbered.groups()
        if letter == "c" and round_number:
            return see_other(reverse("round", args=[int(number), int(round_number)]))
        return see_other(reverse(NUMBERED[letter], args=[int(number)]))
    digest = asked.lower().removeprefix("sha256:").rstrip("…")
    if re.fullmatch(r"[0-9a-f]{8,64}", digest):
        try:
            return see_other(reverse("kernel", args=[selectors.kernel_for(request.user, digest).short]))
        except NotFound as error:
            messages.warning(request, error.text)
            return see_other("/")
    operator = Operator.objects.filter(name__iexact=asked.replace(" ", "_")).first()
    if operator is not None:
        return see_other(reverse("operator", args=[operator.name]))
    hardware = Hardware.objects.filter(name__iexact=asked.replace(" ", "-")).first()
    if hardware is not None:
        return see_other(reverse("hardware", args=[hardware.name]))
    messages.warning(
        request,
        f"Nothing is called '{asked}'. Write C-3, C-3 r4, R-2, V-17, at least 8 digits of a digest, "
        "or the name of an operator or a device.",
    )
    return see_other("/")
