"""Socket addresses."""

from __future__ import annotations

from django.urls import path

from apps.stream.consumers import StreamConsumer, TeamStreamConsumer

websocket_urlpatterns = [
    path("ws/campaigns/<int:key>/", StreamConsumer.as_asgi()),
    path("ws/teams/<slug:key>/", TeamStreamConsumer.as_asgi()),
]
