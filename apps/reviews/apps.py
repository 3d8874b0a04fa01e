"""Django's registration of this app."""

from __future__ import annotations

from django.apps import AppConfig


class ReviewsConfig(AppConfig):
    """Registers ``apps.reviews``."""

    name = "apps.reviews"
    label = "reviews"
