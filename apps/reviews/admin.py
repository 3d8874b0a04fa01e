"""The admin shows rows and changes none: every write has its service, and promotions have the gate alone."""

from __future__ import annotations

from django.contrib import admin

from apps.core.admin import ReadOnlyAdmin
from apps.reviews.models import Decision, ReviewRequest, SpotCheck, Thread, Verification, Veto, VetoLift

admin.site.register([Decision, ReviewRequest, SpotCheck, Thread, Verification, Veto, VetoLift], ReadOnlyAdmin)
