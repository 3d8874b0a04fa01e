"""Pages of imported results."""

from __future__ import annotations

from django.urls import path

from apps.imports.views import pages

urlpatterns = [
    path("leaderboards/imported/<int:pk>/", pages.report_page, name="imported-report"),
    path("leaderboards/<str:operator>/imported/<int:report>/", pages.board_page, name="imported-board"),
]
