"""Reading operators, slots, champions, kernels and verdicts. Other teams' objects are ``NotFound``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from django.db.models import Q, QuerySet

from apps.bridge import api
from apps.core.errors import NotFound
from apps.kernels.choices import SlotState
from apps.kernels.models import Champion, Hardware, Kernel, KernelOrigin, Operator, Promotion, Slot, Verdict
from apps.teams.models import Team
from apps.teams.selectors import teams_of

Row = TypeVar("Row")


def operators() -> list[Operator]:
    """Active operators in the order in which the harness lists them."""
    return in_order(Operator.objects.filter(active=True), lambda row: row.name)


def in_order(rows: Iterable[Row], name_of: Callable[[Row], str]) -> list[Row]:
    """Rows by their operator in the order in which the harness lists operators; unknown ones last, by name."""
    places = {name: place for place, name in enumerate(api.operator_names())}
    return sorted(rows, key=lambda row: (places.get(name_of(row), len(places)), name_of(row)))


def operator(name: str) -> Operator:
    """An operator by name.

    Raises:
        NotFound: unknown.
    """
    row = Operator.objects.filter(name=name).first()
    if row is None:
        raise NotFound(f"There is no operator '{name}' here. The operators page lists those that exist.")
    return row


def hardware(name: str) -> Hardware:
    """A device by name.

    Raises:
        NotFound: unknown.
    """
    row = Hardware.objects.filter(name=name).first()
    if row is None:
        raise NotFound(f"There is no hardware '{name}' here. The system page lists what is known.")
    return row


def slots_for(user: Any) -> QuerySet[Slot]:
    """Slots of the user's teams."""
    slots = Slot.objects.filter(team__in=teams_of(user))
    return slots.select_related("team", "operator", "hardware", "champion__kernel", "champion__promotion")


def slot_for(user: Any, *, operator: str, backend: str, hardware: str, workload: str, team: str | None = None) -> Slot:
    """One slot of the user's teams; of ``team`` when the user has several.

    Raises:
        NotFound: no such slot in the user's teams.
    """
    slots = slots_for(user).filter(
        operator__name=operator, backend=backend, hardware__name=hardware, workload=workload
    )
    row = (slots.filter(team__slug=team) if team else slots.order_by("team__name")).first()
    if row is None:
        raise NotFound("None of your teams has worked on this slot yet. Start a campaign for it.")
    return row


def champion_of(slot: Slot) -> Champion | None:
    """The champion of a slot; ``None`` while it is empty. A quarantined one is still returned: look at the state."""
    return Champion.objects.select_related("kernel", "promotion__verdict", "slot").filter(slot=slot).first()


def base_of(slot: Slot) -> tuple[Kernel | None, str]:
    """What a change is compared with: the champion's kernel, or ``None`` with the role ``baseline`` while empty."""
    champion = champion_of(slot)
    if champion is None or Slot.objects.filter(pk=slot.pk, state=SlotState.EMPTY).exists():
        return None, "baseline"
    return champion.kernel, "champion"


def slot_history(slot: Slot) -> QuerySet[Promotion]:
    """Promotions of a slot, newest first; rollbacks included, nothing removed."""
    return slot.promotions.select_related("kernel", "previous", "by", "request", "restores")


def kernel_for(user: Any, digest: str) -> Kernel:
    """A kernel that one of the user's teams has (by origin, verdict or promotion), or that came with an imported
    report. A prefix of 8 hex digits will do where it is unique.

    Raises:
        NotFound: unknown, ambiguous, or another team's.
    """
    wanted = digest if digest.startswith("sha256:") else f"sha256:{digest}"
    teams = teams_of(user)
    rows = Kernel.objects.filter(digest__startswith=wanted).filter(
        Q(origins__team__in=teams) | Q(verdicts__team__in=teams) | Q(promotions__slot__team__in=teams)
        | (Q(imported__isnull=False) if user.is_authenticated else Q(pk__in=[]))
    ).select_related("operator").distinct()[:2]
    if len(wanted) < len("sha256:") + 8 or len(rows) != 1:
        raise NotFound("There is no such kernel in your teams.")
    return rows[0]


def verdict_for(user: Any, pk: int) -> Verdict:
    """A verdict of the user's teams; or one that belongs to nobody: a reading of a device's canary, or one that came
    with an imported report.

    Raises:
        NotFound: unknown or another team's.
    """
    nobodys = Q(purpose="canary") | Q(foreign=True, imported__isnull=False)
    seen = Q(team__in=teams_of(user)) | (Q(team__isnull=True) & nobodys)
    row = Verdict.objects.select_related("kernel__operator", "team", "samples").filter(seen, pk=pk).first()
    if row is None:
        raise NotFound("There is no such verdict in your teams.")
    return row


def verdicts_of(user: Any, kernel: Kernel) -> QuerySet[Verdict]:
    """Verdicts on a kernel that the user may see, newest first; those of imported reports are marked as foreign."""
    seen = Q(team__in=teams_of(user)) | Q(team__isnull=True, foreign=True, imported__isnull=False)
    return kernel.verdicts.filter(seen).select_related("team")


def origins_of(user: Any, kernel: Kernel) -> QuerySet[KernelOrigin]:
    """Where the user's teams have a kernel from."""
    return kernel.origins.filter(team__in=teams_of(user)).select_related("team", "parent")


def lineage(kernel: Kernel, team: Team, limit: int = 100) -> list[Kernel]:
    """A kernel and what it was built on, back to the baseline."""
    chain, seen = [kernel], {kernel.pk}
    while len(chain) < limit:
        origin = KernelOrigin.objects.filter(team=team, kernel=chain[-1], parent__isnull=False).order_by("id").first()
        if origin is None or origin.parent is None or origin.parent.pk in seen:
            break
        chain.append(origin.parent)
        seen.add(origin.parent.pk)
    return chain
