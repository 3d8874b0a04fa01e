"""Django's registration of this app."""

from __future__ import annotations

from django.apps import AppConfig


class TeamsConfig(AppConfig):
    """Registers ``apps.teams``."""

    name = "apps.teams"
    label = "teams"
