"""Leaderboard pages."""

from __future__ import annotations

from django.urls import path

from apps.leaderboards.views import boards

urlpatterns = [
    path("leaderboards/", boards.listing, name="boards"),
    path("leaderboards/<str:operator>/", boards.board_page, name="board"),
]
