"""Whether a token still stands: asked at every call, while one waits, and once more where an answer is handed in."""

from __future__ import annotations

from apps.core.errors import Refused
from apps.teams.models import ApiToken
from apps.teams.tokens import Caller


def check_token(caller: Caller) -> None:
    """Raises:
    Refused: the token was revoked, or its account left, since the caller came in.
    """
    token = caller.token
    if token is None or not ApiToken.objects.filter(
        pk=token.pk, revoked_at__isnull=True, user__is_active=True
    ).exists():
        raise Refused("This API token was revoked.", code="signed_out")
