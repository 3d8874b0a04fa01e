"""Route table. Each app owns its own urls module; an app without one simply has no pages yet."""

from __future__ import annotations

from importlib.util import find_spec

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

from apps.core.views.absent import api_absent
from apps.teams.views import admin_door

PAGES = (
    ("", "apps.core.urls"),
    ("", "apps.teams.urls"),
    ("", "apps.campaigns.urls"),
    ("", "apps.kernels.urls"),
    ("", "apps.reviews.urls"),
    ("", "apps.imports.urls"),
    ("", "apps.leaderboards.urls"),
    ("", "apps.audit.urls"),
    ("api/v1/", "apps.campaigns.api_urls"),
    ("api/v1/", "apps.kernels.api_urls"),
    ("api/v1/", "apps.stream.api_urls"),
)

urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/login/", admin_door.admin_sign_in),  # before the admin's own
    path("admin/password_change/", admin_door.admin_password),
    path("admin/", admin.site.urls),
]
urlpatterns += [path(prefix, include(module)) for prefix, module in PAGES if find_spec(module)]
urlpatterns += [path(f"api/{rest}", api_absent) for rest in ("", "<path:rest>")]  # after all that exist
