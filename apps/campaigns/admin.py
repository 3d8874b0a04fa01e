"""The admin shows rows and changes none: every write has its service, and promotions have the gate alone."""

from __future__ import annotations

from django.contrib import admin

from apps.campaigns.models import Campaign, EngineResult, Hypothesis, Job, Round, SelfTest, Worker
from apps.core.admin import ReadOnlyAdmin

admin.site.register([Campaign, EngineResult, Hypothesis, Job, Round, SelfTest, Worker], ReadOnlyAdmin)
