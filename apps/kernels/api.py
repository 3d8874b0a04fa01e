"""Champions for serving teams: source, digest, environment class, approvals, verdict summary."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, JsonResponse

from apps.bridge import api
from apps.core.errors import AppError, NotFound
from apps.kernels.choices import SlotState
from apps.kernels.models import Champion, Slot
from apps.reviews.history import uncarried
from apps.reviews.rechecks import outdated
from apps.teams.tokens import Caller, api_view


class NoChampion(AppError):
    """The slot is empty or quarantined: nothing is handed out."""

    code = "no_champion"
    status = 409


FILTERS = ("backend", "hardware", "workload", "team")


@api_view("GET")
def champion(request: HttpRequest, caller: Caller, operator: str) -> JsonResponse:
    """``GET /api/v1/champions/<operator>?backend=&hardware=&workload=&team=``.

    409 when the slot is empty or quarantined, 404 for slots of other teams, 422 when several slots fit.
    """
    slots = Slot.objects.filter(team__in=caller.teams, operator__name=operator).select_related(
        "team", "operator", "hardware"
    )
    given = {key: request.GET[key] for key in FILTERS if request.GET.get(key)}
    names = {"backend": "backend", "hardware": "hardware__name", "workload": "workload", "team": "team__slug"}
    fitting = list(slots.filter(**{names[key]: value for key, value in given.items()})[:2])
    if not fitting:
        raise NotFound(f"None of your teams has a slot for {operator} like that.")
    if len(fitting) > 1:
        raise AppError(f"Several slots fit; name {', '.join(key for key in FILTERS if key not in given)} too.",
                       code="ambiguous")
    return JsonResponse(champion_document(fitting[0]))


def champion_document(slot: Slot) -> dict[str, Any]:
    """What is handed out for a slot.

    Raises:
        NoChampion: empty, quarantined, or the stored bytes do not have their digest.
    """
    champions = Champion.objects.select_related("kernel", "promotion__verdict", "promotion__request")
    row = champions.filter(slot=slot).first()
    if slot.state != SlotState.CHAMPION or row is None:
        why = f": {slot.state_reason}" if slot.state_reason else ""
        raise NoChampion(f"{slot} of {slot.team} is {slot.state}{why}. Serve the library's kernel meanwhile.",
                         code=f"slot_{slot.state}")
    source = bytes(row.kernel.source)
    if api.digest(source) != row.kernel_id:
        raise NoChampion("The stored bytes do not have their digest; nothing is handed out.", code="bytes_differ")
    broken = uncarried(champions.filter(pk=row.pk))
    if broken:
        raise NoChampion(f"{broken[0]} Nothing is handed out meanwhile.", code="gate_refused")
    again = outdated(row)
    promotion, verdict = row.promotion, row.promotion.verdict
    approvals = [] if promotion.request is None else [
        {"by": d.user.name, "at": d.at.isoformat(), "demo": d.demo, "self_review": d.self_review}
        for d in promotion.request.decisions.filter(kind="approve").select_related("user")
    ]
    timing = verdict.document.get("timing") or {}
    return {
        "operator": slot.operator.name, "backend": slot.backend, "hardware": slot.hardware.name,
        "workload": slot.workload, "team": slot.team.slug, "digest": row.kernel_id, "source": source.decode("utf-8"),
        "environment_class": verdict.environment_class, "since": row.since.isoformat(),
        "reverifying": again,
        "promotion": {"id": promotion.pk, "kind": promotion.kind, "gate_tier": promotion.gate_tier,
                      "required_approvals": promotion.required_approvals, "self_reviewed": promotion.self_reviewed},
        "approvals": approvals,
        "verdict": {"id": verdict.pk, "outcome": verdict.outcome, "comparison": verdict.comparison,
                    "compared_with": verdict.compared_with, "overall": timing.get("overall", {}),
                    "noise": timing.get("noise"), "evaluator": verdict.evaluator_version,
                    "isolation": verdict.isolation, "regressions": verdict.regressions},
    }
