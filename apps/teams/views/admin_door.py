"""The admin's two doors that take a password: both lead through the limits of ``apps.teams.throttle``."""

from __future__ import annotations

from contextlib import suppress
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_safe

from apps.core.errors import Refused
from apps.core.paging import back_to, refusals
from apps.teams import sessions


@never_cache
@require_safe
@refusals
def admin_sign_in(request: HttpRequest) -> HttpResponse:
    """The admin has no form of its own: people sign in on the site's one."""
    to = back_to(request, "/admin/")
    if admin.site.has_permission(request):
        return redirect(to)
    if request.user.is_authenticated:
        raise Refused("The admin's pages are for admins of the installation, and your account is none. Sign out and in "
                      "again as one.")
    return redirect(f"{settings.LOGIN_URL}?{urlencode({'next': to})}")


@sensitive_post_parameters()
@refusals
def admin_password(request: HttpRequest) -> HttpResponse:
    """Django's own page; the old password is a try like any other."""
    if request.method == "POST" and admin.site.has_permission(request):
        with suppress(Refused):  # it is counted; the form says itself that the old password is wrong
            sessions.reauthenticate(request, password=request.POST.get("old_password", ""))
    return admin.site.admin_view(admin.site.password_change, cacheable=True)(request)
