"""Whether a champion was verified under what holds now: this evaluator version and this environment class."""

from __future__ import annotations

from django.conf import settings

from apps.bridge import api
from apps.campaigns.jobs.selectors import environment_class_now
from apps.kernels.choices import SlotState
from apps.kernels.models import Champion, Verdict


def outdated(champion: Champion) -> str | None:
    """Why a champion has to be verified again; ``None`` where a passed verification of now stands.

    Any passed verification in the present class counts, so that two hosts of different classes that take turns order
    one each and no more.
    """
    slot = champion.slot
    if slot.state != SlotState.CHAMPION:
        return None
    evaluator, place = api.evaluator_version(), environment_class_now(slot.hardware.name, slot.backend)
    checks = Verdict.objects.filter(
        kernel=champion.kernel_id, team=slot.team_id, purpose="promotion", workload=slot.workload, foreign=False,
        hardware=slot.hardware.name, outcome="passed",
    ).order_by("-id")
    now = checks.filter(evaluator_version=evaluator, isolation__gte=settings.REQUIRED_ISOLATION)
    if (now.filter(environment_class=place) if place else now).exists():
        return None
    last = checks.values_list("evaluator_version", "environment_class").first()
    seen, where = last or ("none", "none")
    if seen != evaluator:
        return f"The evaluator is {evaluator} now; the last check was by {seen}."
    return f"The environment class is {place} now; the last check was in {where}."


def outdated_slots(champions: list[Champion]) -> set[int]:
    """Keys of the slots whose champion is verified again."""
    return {champion.slot_id for champion in champions if outdated(champion) is not None}
