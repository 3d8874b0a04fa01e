"""Django's registration of this app."""

from __future__ import annotations

from django.apps import AppConfig


class ImportsConfig(AppConfig):
    """Registers ``apps.imports``."""

    name = "apps.imports"
    label = "imports"
