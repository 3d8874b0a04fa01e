"""Counting wrong passwords. The tables, the counting and the commands that lift it are django-axes'; the limits are
ours: a narrow one for a name from one address, and wide ones for an address and for a name alone."""

from __future__ import annotations

from datetime import datetime, timedelta
from math import ceil
from typing import Any

from axes.handlers.database import AxesDatabaseHandler
from django.conf import settings
from django.db import transaction
from django.db.models import Max, Sum
from django.http import HttpRequest
from django.utils import timezone
from django.utils.crypto import salted_hmac

from apps.audit.services import audit_record
from apps.teams.addresses import from_loopback
from apps.teams.models import User
from apps.teams.sessions import session_hash

Credentials = dict[str, Any]


def counted_name(request: HttpRequest, credentials: Credentials | None) -> str | None:
    """The name that a try is counted under. What is no account's name may be a password typed into the wrong field: of
    it only a keyed digest is kept."""
    name = (credentials or request.POST).get("username")
    if not name:
        return None
    known: dict[str, str] = request.__dict__.setdefault("counted_names", {})
    if name not in known:
        is_account = User.objects.filter(username=name).exists()
        known[name] = name if is_account else f"nobody:{salted_hmac('apps.teams.throttle', name).hexdigest()[:32]}"
    return known[name]


def nothing_to_guess(request: HttpRequest, credentials: Credentials | None) -> bool:
    """Whether the password stands on the sign-in page: a demo person, from this machine, while the switch is on."""
    if not settings.DEMO or not from_loopback(request):
        return False
    return User.objects.filter(username=(credentials or {}).get("username"), demo=True).exists()


def typed_nothing(instance: Any, **_: Any) -> None:
    """Before a row of tries is saved: the library would keep the form's other fields, a comment among them."""
    instance.get_data = instance.post_data = ""


class Throttle(AxesDatabaseHandler):
    """What django-axes asks and tells. Its parameters are, in this order: name and address, address, name."""

    def get_failures(self, request: HttpRequest, credentials: Credentials | None = None) -> int:
        """Wrong passwords on the scale of the narrow limit: it is reached where any of the three is."""
        narrow = settings.AXES_FAILURE_LIMIT
        return max(count + narrow - limit for count, _, limit in self._counted(request, credentials))

    def minutes_left(self, request: HttpRequest, credentials: Credentials) -> int:
        """For how long at most a limit stays reached; 0 where none is."""
        until = [newest + settings.AXES_COOLOFF_TIME for count, newest, limit in self._counted(request, credentials)
                 if count >= limit and newest is not None]
        return max((max(1, ceil((one - timezone.now()).total_seconds() / 60)) for one in until), default=0)

    def _counted(
        self, request: HttpRequest, credentials: Credentials | None
    ) -> list[tuple[int, datetime | None, int]]:
        wide = settings.SIGN_IN_TRIES_IN_ALL
        found = [one.aggregate(count=Sum("failures_since_start"), newest=Max("attempt_time"))
                 for one in self.get_user_attempts(request, credentials)]
        return [(one["count"] or 0, one["newest"], limit)
                for one, limit in zip(found, (settings.AXES_FAILURE_LIMIT, wide, wide), strict=True)]

    def reset_user_attempts(self, request: HttpRequest, credentials: Credentials | None = None) -> int:
        """Forget what was mistyped for this name from this address. The wide counts of others stay: an account of
        one's own must not buy new guesses at somebody else's."""
        count, _ = self.filter_user_attempts(request, credentials)[0].delete()
        return int(count)

    def user_login_failed(
        self, sender: Any, credentials: Credentials, request: HttpRequest | None = None, **kwargs: Any
    ) -> None:
        """Count it and write it into the trail, where the password was looked at and belongs to an account."""
        refused = getattr(request, "axes_locked_out", False)
        with transaction.atomic():
            super().user_login_failed(sender, credentials, request, **kwargs)
            if request is not None and not refused and not self.is_whitelisted(request, credentials):
                _note(request, credentials)


def _note(request: HttpRequest, credentials: Credentials) -> None:
    account = User.objects.filter(username=credentials.get("username")).first()
    if account is None:
        return
    confirming = getattr(request, "user", None) == account
    where = "to confirm, in a session of theirs" if confirming else "at the sign-in"
    address = getattr(request, "axes_ip_address", "no address")
    facts: dict[str, Any] = {"subject": account, "actor": None, "team": None,
                             "session_hash": session_hash(request) if confirming else ""}
    audit_record(verb="sign_in.failed", reason=f"A wrong password from {address} {where}.", **facts)
    if getattr(request, "axes_locked_out", False):
        audit_record(verb="sign_in.refused", **facts, reason=f"Too many wrong passwords, the last one from {address}: "
                     f"further ones are refused for {settings.AXES_COOLOFF_TIME // timedelta(minutes=1)} minutes.")
