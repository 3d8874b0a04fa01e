"""Django's registration of this app."""

from __future__ import annotations

from django.apps import AppConfig


class BridgeConfig(AppConfig):
    """Registers ``apps.bridge``."""

    name = "apps.bridge"
    label = "bridge"
