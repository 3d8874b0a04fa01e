"""The admin shows rows and changes none: every write has its service, and promotions have the gate alone."""

from __future__ import annotations

from django.contrib import admin

from apps.campaigns.models import (
    Campaign,
    CanaryBase,
    CanaryDrift,
    CanaryReading,
    EngineResult,
    Hypothesis,
    Job,
    Round,
    SelfTest,
    SelfTestOrder,
    Worker,
)
from apps.core.admin import ReadOnlyAdmin

admin.site.register(
    [Campaign, CanaryBase, CanaryDrift, CanaryReading, EngineResult, Hypothesis, Job, Round, SelfTest, SelfTestOrder,
     Worker],
    ReadOnlyAdmin,
)
