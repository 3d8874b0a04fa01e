"""Closed lists and the slot machine."""

from __future__ import annotations

from django.db import models

from apps.core.transitions import Machine


class SlotState(models.TextChoices):
    """What a slot holds."""

    EMPTY = "empty", "empty"
    CHAMPION = "champion", "champion"
    QUARANTINED = "quarantined", "quarantined"


SLOT_MACHINE = Machine("slot", {
    SlotState.EMPTY: frozenset({SlotState.CHAMPION}),
    SlotState.CHAMPION: frozenset({SlotState.CHAMPION, SlotState.QUARANTINED, SlotState.EMPTY}),
    SlotState.QUARANTINED: frozenset({SlotState.CHAMPION, SlotState.EMPTY}),
})


class PromotionKind(models.TextChoices):
    """How a kernel became champion. ``AUTO`` exists for light changes of teams that turned it on."""

    REVIEWED = "reviewed", "reviewed"
    AUTO = "auto", "light, by itself"
    ROLLBACK = "rollback", "rollback"


class ContributionKind(models.TextChoices):
    """Why a person counts as a contributor of a kernel."""

    STARTED = "started", "started the campaign"
    EDITED = "edited", "edited the kernel"
    COMMENTED = "commented", "wrote the comment it was built from"
