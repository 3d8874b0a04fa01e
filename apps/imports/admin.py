"""The admin shows imported rows and changes none."""

from __future__ import annotations

from django.contrib import admin

from apps.core.admin import ReadOnlyAdmin
from apps.imports.models import ImportedBoard, ImportedKernel, ImportedReport

admin.site.register([ImportedBoard, ImportedKernel, ImportedReport], ReadOnlyAdmin)
