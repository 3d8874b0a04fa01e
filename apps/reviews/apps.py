"""Django's registration of this app; the gate's triggers follow every migration."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class ReviewsConfig(AppConfig):
    """Registers ``apps.reviews``."""

    name = "apps.reviews"
    label = "reviews"

    def ready(self) -> None:
        """Reinstall the triggers after each migration: a table rebuild drops them without a word."""
        from apps.reviews import checks  # noqa: F401 - registers the system check

        post_migrate.connect(_install, sender=self)


def _install(**_: Any) -> None:
    from apps.reviews import triggers
    from apps.reviews.models import Switches

    if triggers.tables_exist():
        triggers.install()
        Switches.objects.get_or_create(pk=1)
