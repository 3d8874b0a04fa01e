"""The admin shows rows and changes none: every write has its service, and promotions have the gate alone."""

from __future__ import annotations

from django.contrib import admin

from apps.audit.models import AuditEntry
from apps.core.admin import ReadOnlyAdmin

admin.site.register([AuditEntry], ReadOnlyAdmin)
