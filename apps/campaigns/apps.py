"""Django's registration of this app."""

from __future__ import annotations

from django.apps import AppConfig


class CampaignsConfig(AppConfig):
    """Registers ``apps.campaigns``."""

    name = "apps.campaigns"
    label = "campaigns"
