"""Who calls the API: a signed-in person, or a token that stands for one team. Tokens read, never decide."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt, csrf_protect

from apps.core.errors import AppError
from apps.teams.models import ApiToken, Team, User
from apps.teams.selectors import teams_of, token_owner

BEARER = "Bearer "


@dataclass(frozen=True, slots=True)
class Caller:
    """The account that acts, the token it came with, and the teams whose own things it sees."""

    user: User
    token: ApiToken | None

    @property
    def teams(self) -> list[Team]:
        """One team for a token, all of the person's otherwise; none when the account left the token's team."""
        own = list(teams_of(self.user))
        return own if self.token is None else [team for team in own if team.pk == self.token.team_id]


def problem(status: int, code: str, text: str) -> JsonResponse:
    """A refusal as a document: ``code`` names the troubleshooting entry."""
    return JsonResponse({"code": code, "text": text}, status=status)


def api_view(*methods: str) -> Callable[[Callable[..., JsonResponse]], Callable[..., JsonResponse]]:
    """Authenticate an API view, answer errors as documents. A session needs the CSRF token, a bearer token does not."""

    def wrap(view: Callable[..., JsonResponse]) -> Callable[..., JsonResponse]:
        def answer(request: HttpRequest, caller: Caller, **kwargs: Any) -> JsonResponse:
            try:
                response = view(request, caller, **kwargs)
            except AppError as error:
                response = problem(error.status, error.code, error.text)
            response["Cache-Control"] = "no-store"
            return response

        guarded = csrf_protect(answer)

        @csrf_exempt
        @wraps(view)
        def entry(request: HttpRequest, **kwargs: Any) -> JsonResponse:
            if request.method not in methods:
                return problem(405, "method_not_allowed", f"This address takes {', '.join(methods)}.")
            given = request.headers.get("Authorization", "")
            if given.startswith(BEARER):
                token = token_owner(given.removeprefix(BEARER))
                if token is None:
                    return problem(401, "signed_out", "This API token is unknown or revoked.")
                return answer(request, Caller(token.user, token), **kwargs)
            if not request.user.is_authenticated:
                return problem(401, "signed_out", "Sign in, or send an API token as 'Authorization: Bearer ...'.")
            return guarded(request, Caller(request.user, None), **kwargs)  # type: ignore[arg-type]

        return entry

    return wrap
