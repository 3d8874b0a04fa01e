"""The admin shows rows and changes none: every write has its service, and promotions have the gate alone."""

from __future__ import annotations

from django.contrib import admin

from apps.core.admin import ReadOnlyAdmin
from apps.kernels.models import Champion, Hardware, Kernel, Operator, Promotion, Quarantine, Slot, Verdict

admin.site.register([Champion, Hardware, Kernel, Operator, Promotion, Quarantine, Slot, Verdict], ReadOnlyAdmin)
