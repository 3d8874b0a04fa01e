"""Sign-in and team pages."""

from __future__ import annotations

from django.urls import path

from apps.teams.views import accounts, team

urlpatterns = [
    path("accounts/sign-in/", accounts.sign_in, name="sign-in"),
    path("accounts/sign-out/", accounts.sign_out, name="sign-out"),
    path("accounts/confirm/", accounts.confirm, name="confirm"),
    path("teams/<slug:slug>/", team.show_team, name="team"),
    path("teams/<slug:slug>/policy/", team.set_policy, name="team-policy"),
    path("teams/<slug:slug>/sharing/", team.set_sharing, name="team-sharing"),
    path("teams/<slug:slug>/members/", team.add_member, name="team-member-add"),
    path("teams/<slug:slug>/tokens/", team.make_token, name="team-token-add"),
    path("teams/<slug:slug>/tokens/revoke/", team.revoke_token, name="team-token-revoke"),
    path("teams/<slug:slug>/roles/grant/", team.grant_role, name="team-role-grant"),
    path("teams/<slug:slug>/roles/revoke/", team.revoke_role, name="team-role-revoke"),
]
