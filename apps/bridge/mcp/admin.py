"""The admin shows what outside agents did, and changes nothing of it."""

from __future__ import annotations

from django.contrib import admin

from apps.bridge.mcp.models import Asking
from apps.core.admin import ReadOnlyAdmin

admin.site.register([Asking], ReadOnlyAdmin)
