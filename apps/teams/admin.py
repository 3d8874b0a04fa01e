"""The admin shows rows and changes none: every write has its service, and promotions have the gate alone."""

from __future__ import annotations

from axes.models import AccessAttempt
from django.contrib import admin
from django.contrib.auth.models import Group

from apps.core.admin import ReadOnlyAdmin
from apps.teams.models import ApiToken, Membership, RoleGrant, Team, User

admin.site.register([AccessAttempt, ApiToken, Membership, RoleGrant, Team, User], ReadOnlyAdmin)
# Rights are the roles of a team; a group would be a second way to them that nobody watches.
admin.site.unregister(Group)
