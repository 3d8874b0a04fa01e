"""The admin shows rows and changes none: every write has its service, and promotions have the gate alone."""

from __future__ import annotations

from django.contrib import admin

from apps.core.admin import ReadOnlyAdmin
from apps.stream.models import Event, Stream

admin.site.register([Event, Stream], ReadOnlyAdmin)
