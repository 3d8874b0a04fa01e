"""Django's registration of this app."""

from __future__ import annotations

from django.apps import AppConfig
from django.db.models.signals import pre_save


class TeamsConfig(AppConfig):
    """Registers ``apps.teams``."""

    name = "apps.teams"
    label = "teams"

    def ready(self) -> None:
        """What people typed never reaches the table of wrong passwords."""
        from axes.models import AccessAttempt

        from apps.teams.throttle import typed_nothing

        pre_save.connect(typed_nothing, sender=AccessAttempt)
