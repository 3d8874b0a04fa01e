"""Django's registration of this app."""

from __future__ import annotations

from django.apps import AppConfig


class McpConfig(AppConfig):
    """Registers ``apps.bridge.mcp``."""

    name = "apps.bridge.mcp"
    label = "mcp"
