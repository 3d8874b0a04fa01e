"""Signing in, and proving anew who one is before a decision."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from axes.handlers.proxy import AxesProxyHandler
from django.conf import settings
from django.contrib.auth import authenticate, login
from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone

from apps.core.errors import Refused, TooManyTries
from apps.teams.addresses import from_loopback
from apps.teams.choices import AccountKind
from apps.teams.models import RoleGrant, User

PROVED_AT = "reauthenticated_at"
NAME_LENGTH = User._meta.get_field("username").max_length or 0
DEMO_PASSWORD = "demo-kernelopt"  # shown on the sign-in page; accounts exist only with the demo switch
WRONG = "User name and password do not match. Nothing was changed; check both and try again."


@dataclass(frozen=True, slots=True)
class DemoPerson:
    """A row of the sign-in page's one-click list."""

    username: str
    name: str
    roles: tuple[str, ...]
    password: str


def demo_people(request: HttpRequest) -> list[DemoPerson]:
    """People to sign in as with one click: only with the demo switch on, only on loopback."""
    if not settings.DEMO or not from_loopback(request):
        return []
    people = User.objects.filter(demo=True, is_active=True, kind=AccountKind.PERSON).order_by("username")
    return [DemoPerson(u.username, u.name, _roles(u), DEMO_PASSWORD) for u in people]


def _roles(user: User) -> tuple[str, ...]:
    held = RoleGrant.objects.filter(membership__user=user, revoked_at__isnull=True)
    return tuple(held.order_by("role").values_list("role", flat=True).distinct())


def person_sign_in(request: HttpRequest, *, username: str, password: str) -> User:
    """Sign a person in. Demo accounts open only while the demo switch is on and only from loopback.

    Raises:
        Refused: wrong name or password, a service account, or a demo account from elsewhere.
        TooManyTries: there were too many wrong ones, whatever this one is.
    """
    user = _checked(request, username, password, kept="Nothing was changed;")
    if user is None or user.kind != AccountKind.PERSON:
        raise Refused(WRONG, code="sign_in_failed")
    if user.demo and not (settings.DEMO and from_loopback(request)):
        raise Refused("Demo people can sign in only on the machine itself, while the demo switch is on.",
                      code="sign_in_failed")
    login(request, user)
    _prove(request)
    return user


def demo_sign_in(request: HttpRequest, *, username: str) -> User:
    """One click on a demo person: the same sign-in, with the password that stands on the page."""
    if username not in {person.username for person in demo_people(request)}:
        raise Refused("One-click sign-in exists only for demo people, on this machine, while the demo switch is on.",
                      code="sign_in_failed")
    return person_sign_in(request, username=username, password=DEMO_PASSWORD)


def reauthenticate(request: HttpRequest, *, password: str) -> None:
    """Prove anew who one is; good for decisions in the next 15 minutes.

    Raises:
        Refused: the password is wrong; the session stays as it was.
        TooManyTries: there were too many wrong ones, whatever this one is; signing in counts too.
    """
    username = request.user.get_username()
    user = _checked(request, username, password, kept="Nothing was recorded;")
    if user is None or user != request.user:
        raise Refused("That is not your password. Nothing was recorded; your text is kept.", code="reauthentication")
    AxesProxyHandler.get_implementation().reset_user_attempts(request, {"username": username})
    _prove(request)


def _checked(request: HttpRequest, username: str, password: str, *, kept: str) -> User | None:
    """Whose password it is, if it is the one of ``username`` and may still be tried (``apps.teams.throttle``)."""
    if not username or len(username) > NAME_LENGTH or "\0" in username:
        return None  # nobody's, and no column holds or tells it apart
    user = authenticate(request, username=username, password=password)
    door, asked = AxesProxyHandler, {"username": username}
    unseen: Any = request
    unseen.axes_locked_out = False  # the refusal below is shown by the page that asked, not by the library's own
    with transaction.atomic():  # behind tries sent at the same moment, which passed the first look together
        if door.is_allowed(request, asked):
            return user if isinstance(user, User) else None
        minutes = door.get_implementation().minutes_left(request, asked)
    raise TooManyTries(
        f"Too many wrong passwords were tried. For the next {minutes} minute{'s' if minutes > 1 else ''} even the "
        f"right one is refused here. {kept} try again then.")


def _prove(request: HttpRequest) -> None:
    request.session[PROVED_AT] = timezone.now().timestamp()


def reauthenticated_at(request: HttpRequest) -> datetime | None:
    """When this session last proved who it is, ``None`` if never."""
    stamp = request.session.get(PROVED_AT)
    return datetime.fromtimestamp(stamp, tz=UTC) if isinstance(stamp, int | float) else None


def is_fresh(proved_at: datetime | None) -> bool:
    """Whether a proof is young enough for a decision."""
    if proved_at is None:
        return False
    age = timezone.now() - proved_at
    return timedelta(0) <= age <= timedelta(seconds=settings.REAUTHENTICATION_SECONDS)


def proof_check(proved_at: datetime | None, what: str) -> None:
    """Ask for a fresh proof of who one is before ``what``, the words that begin a sentence.

    Raises:
        Refused: it is too old, or there is none.
    """
    if not is_fresh(proved_at):
        minutes = settings.REAUTHENTICATION_SECONDS // 60
        raise Refused(f"{what} needs your password again if you gave it more than {minutes} minutes ago. Nothing "
                      "was recorded; your text is kept.", code="reauthentication")


def session_hash(request: HttpRequest) -> str:
    """A digest of the session's key for the trail; the key itself is never stored there."""
    key = request.session.session_key or ""
    return hashlib.sha256(key.encode("ascii")).hexdigest() if key else ""
