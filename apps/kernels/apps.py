"""Django's registration of this app."""

from __future__ import annotations

from django.apps import AppConfig


class KernelsConfig(AppConfig):
    """Registers ``apps.kernels``."""

    name = "apps.kernels"
    label = "kernels"
