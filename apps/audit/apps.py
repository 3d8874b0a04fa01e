"""Django's registration of this app."""

from __future__ import annotations

from django.apps import AppConfig


class AuditConfig(AppConfig):
    """Registers ``apps.audit``."""

    name = "apps.audit"
    label = "audit"
