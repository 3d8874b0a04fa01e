"""Addresses of the API that lead nowhere: programs get a document there, too."""

from __future__ import annotations

from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from apps.teams.tokens import problem


@csrf_exempt
def api_absent(request: HttpRequest, rest: str = "") -> JsonResponse:
    """404 for every method; what was asked is not repeated."""
    return problem(404, "not_found", "The API has no such address. docs/api.md lists those that it has.")
