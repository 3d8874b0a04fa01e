"""Django's registration of this app."""

from __future__ import annotations

from django.apps import AppConfig


class StreamConfig(AppConfig):
    """Registers ``apps.stream``."""

    name = "apps.stream"
    label = "stream"
