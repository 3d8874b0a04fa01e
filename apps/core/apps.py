"""Django's name for this app."""

from __future__ import annotations

from django.apps import AppConfig


class CoreConfig(AppConfig):
    """Pages and tags that belong to no single room."""

    name = "apps.core"
    label = "core"
