"""Django's registration of this app."""

from __future__ import annotations

from django.apps import AppConfig


class LeaderboardsConfig(AppConfig):
    """Registers ``apps.leaderboards``."""

    name = "apps.leaderboards"
    label = "leaderboards"
