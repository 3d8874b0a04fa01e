"""The admin shows rows and changes none: every write has its service, and promotions have the gate alone."""

from __future__ import annotations

from axes.models import AccessAttempt
from django.contrib import admin

from apps.core.admin import ReadOnlyAdmin
from apps.teams.models import ApiToken, Membership, RoleGrant, Team, User

admin.site.register([AccessAttempt, ApiToken, Membership, RoleGrant, Team, User], ReadOnlyAdmin)
