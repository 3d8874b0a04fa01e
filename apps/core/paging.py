"""How views answer: refusals become pages with their sentence, actions become redirects with a message."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from apps.core.errors import AppError, NotFound
from apps.teams.models import User

View = Callable[..., HttpResponse]


class SignedIn(HttpRequest):
    """The request of a signed-in account, as views behind ``page`` get it. For annotations only."""

    user: User  # type: ignore[assignment]


def refusals(view: View) -> View:
    """Turn what services and selectors refuse into answers: 404 for what is not to be seen, else the sentence."""

    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return view(request, *args, **kwargs)
        except NotFound as error:
            raise Http404(error.text) from error
        except AppError as error:
            status = error.status if error.status in (400, 403, 409, 422, 429) else 400
            return render(request, "core/refused.html", {"error": error}, status=status)

    return wrapped


def page(view: View) -> View:
    """A page for signed-in people."""
    return login_required(refusals(view))


def act(request: HttpRequest, done: str, action: Callable[[], Any], *, to: str) -> HttpResponse:
    """Run a service and go to ``to`` (303: reloading repeats nothing) with ``done`` or the refusal as a message."""
    try:
        action()
    except NotFound as error:
        raise Http404(error.text) from error
    except AppError as error:
        messages.error(request, error.text, extra_tags=error.code)
    else:
        messages.success(request, done)
    return see_other(to)


class SeeOther(HttpResponseRedirect):
    """303: what follows a POST is always a GET."""

    status_code = 303


def see_other(to: str) -> HttpResponse:
    """303 to an address of this site."""
    return SeeOther(to)


def back_to(request: HttpRequest, default: str) -> str:
    """The posted ``next`` when it is an address of this site, else ``default``."""
    to = request.POST.get("next") or request.GET.get("next") or ""
    return (
        to if url_has_allowed_host_and_scheme(to, {request.get_host()}, require_https=request.is_secure()) else default
    )


def show(
    request: HttpRequest,
    template: str,
    context: Mapping[str, Any],
    parts: Mapping[str, str] | None = None,
    status: int = 200,
) -> HttpResponse:
    """Render a page, or only the region that ``?part=`` names: live regions fetch themselves that way."""
    part = request.GET.get("part")
    if part is not None and parts:
        if part not in parts:
            raise Http404(f"This page has no part named '{part}'.")
        return render(request, parts[part], {**context, "part": part}, status=status)
    return render(request, template, dict(context), status=status)


def number_in(text: str) -> int | None:
    """A number of a row as it was posted; ``None`` for anything but up to fifteen decimal digits."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


def trouble(code: str) -> str:
    """Address of the troubleshooting entry of a code."""
    return reverse("troubleshooting", args=[code])
