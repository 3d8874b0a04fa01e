"""Addresses under ``/api/v1/``."""

from __future__ import annotations

from django.urls import path

from apps.kernels.api import champion

urlpatterns = [path("champions/<slug:operator>", champion, name="api-champion")]
