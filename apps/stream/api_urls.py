"""Addresses under ``/api/v1/``."""

from __future__ import annotations

from django.urls import path

from apps.stream import api

urlpatterns = [
    path("campaigns/<int:pk>/events", api.campaign_events, name="api-campaign-events"),
    path("teams/<slug:slug>/events", api.team_events, name="api-team-events"),
]
