"""Every refusal and state links here (R25)."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from apps.core import troubleshooting, words


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """All entries, searchable by the browser."""
    asked = request.GET.get("q", "").strip().lower()
    found = [
        one
        for one in troubleshooting.entries().values()
        if not asked or asked in one.code or asked in one.title.lower() or asked in one.text.lower()
    ]
    return render(
        request,
        "core/troubleshooting_index.html",
        {"entries": found, "q": asked, "total": len(troubleshooting.entries())},
    )


@require_safe
def entry(request: HttpRequest, code: str) -> HttpResponse:
    """One entry; an unknown code gets a page that says how to go on."""
    found = troubleshooting.entry(code)
    if found is None:
        near = [one for one in troubleshooting.entries().values() if set(one.code.split("_")) & set(code.split("_"))]
        return render(request, "core/troubleshooting_unknown.html", {"code": code, "near": near[:8]}, status=404)
    return render(request, "core/troubleshooting.html", {"entry": found, "outcome": words.OUTCOMES.get(code)})
