"""Addresses under ``/api/v1/``."""

from __future__ import annotations

from django.urls import path

from apps.campaigns.api import campaign, campaigns

urlpatterns = [
    path("campaigns", campaigns, name="api-campaigns"),
    path("campaigns/<int:pk>", campaign, name="api-campaign"),
]
