"""The audit trail."""

from __future__ import annotations

from django.urls import path

from apps.audit.views import trail

urlpatterns = [path("audit/", trail, name="audit")]
