"""One verdict, and what it rests on as files."""

from __future__ import annotations

import json

from django.http import HttpResponse

from apps.core.errors import NotFound
from apps.core.paging import SignedIn, page, show
from apps.kernels import exports, selectors
from apps.kernels.models import Verdict
from apps.kernels.screens.verdict.page import verdict_context


@page
def verdict_page(request: SignedIn, pk: int) -> HttpResponse:
    """A verdict whole."""
    return show(request, "kernels/verdict.html", verdict_context(selectors.verdict_for(request.user, pk)))


@page
def verdict_document(request: SignedIn, pk: int) -> HttpResponse:
    """The stored document."""
    verdict = selectors.verdict_for(request.user, pk)
    return HttpResponse(json.dumps(verdict.document, indent=1), content_type="application/json")


@page
def samples_json(request: SignedIn, pk: int) -> HttpResponse:
    """The raw samples, byte for byte as they came: the verdict names them by digest."""
    verdict = _timed(selectors.verdict_for(request.user, pk))
    assert verdict.samples is not None
    return _file(bytes(verdict.samples.data), "application/json", f"verdict-{pk}-samples.json")


@page
def samples_csv(request: SignedIn, pk: int) -> HttpResponse:
    """The raw samples as a table."""
    verdict = _timed(selectors.verdict_for(request.user, pk))
    assert verdict.samples is not None
    text = exports.samples_csv(json.loads(bytes(verdict.samples.data)))
    return _file(text.encode(), "text/csv; charset=utf-8", f"verdict-{pk}-samples.csv")


def _timed(verdict: Verdict) -> Verdict:
    if verdict.samples is None:
        raise NotFound("This verdict has no samples: nothing was timed.")
    return verdict


def _file(data: bytes, content_type: str, name: str) -> HttpResponse:
    return HttpResponse(data, content_type=content_type,
                        headers={"Content-Disposition": f'attachment; filename="{name}"'})
