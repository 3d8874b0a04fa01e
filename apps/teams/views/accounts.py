"""Signing in and out, and proving anew who one is."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth import logout
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from apps.core.errors import AppError
from apps.core.paging import back_to, see_other
from apps.teams import sessions


@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    """The form, and with the demo switch the people to sign in as with one click."""
    to = back_to(request, "/")
    refusal: AppError | None = None
    username = request.POST.get("username", "")
    if request.method == "POST":
        try:
            if request.POST.get("demo"):
                sessions.demo_sign_in(request, username=request.POST["demo"])
            else:
                sessions.person_sign_in(request, username=username, password=request.POST.get("password", ""))
            return see_other(to)
        except AppError as error:
            refusal = error
    context = {"people": sessions.demo_people(request), "next": to, "refusal": refusal, "username": username}
    return render(request, "teams/sign_in.html", context, status=refusal.status if refusal else 200)


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """End the session."""
    logout(request)
    messages.success(request, "Signed out.")
    return see_other("/accounts/sign-in/")


@never_cache
@login_required
@sensitive_post_parameters("password")
@require_http_methods(["GET", "POST"])
def confirm(request: HttpRequest) -> HttpResponse:
    """Re-authentication on a page of its own; decisions also take the password in their own form."""
    to = back_to(request, "/")
    refusal: AppError | None = None
    if request.method == "POST":
        try:
            sessions.reauthenticate(request, password=request.POST.get("password", ""))
            return see_other(to)
        except AppError as error:
            refusal = error
    context = {"next": to, "refusal": refusal}
    return render(request, "teams/confirm.html", context, status=refusal.status if refusal else 200)
