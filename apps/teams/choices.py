"""Closed lists of the teams app."""

from __future__ import annotations

from django.db import models


class Role(models.TextChoices):
    """Roles are per team; a membership holds a set of them."""

    VIEWER = "viewer", "viewer"
    ENGINEER = "engineer", "engineer"
    REVIEWER = "reviewer", "reviewer"
    MAINTAINER = "maintainer", "maintainer"


class AccountKind(models.TextChoices):
    """Only persons decide anything; service accounts are agents, workers and importers."""

    PERSON = "person", "person"
    SERVICE = "service", "service"
