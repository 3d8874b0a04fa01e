"""Django's registration of this app; it brings the site's own system checks along."""

from __future__ import annotations

from django.apps import AppConfig


class CoreConfig(AppConfig):
    """Registers ``apps.core``."""

    name = "apps.core"
    label = "core"

    def ready(self) -> None:
        """Register the checks of ``kernelopt_site``."""
        from kernelopt_site import checks  # noqa: F401
