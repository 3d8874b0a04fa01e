"""One selector for every board, page and export."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from apps.bridge import api
from apps.campaigns.models import Campaign, Round
from apps.core.errors import NotFound, Refused
from apps.kernels.models import Champion, Operator, Promotion, Quarantine, Slot, Verdict
from apps.leaderboards.ranking import BoardRow, ranked
from apps.reviews.choices import REQUEST_OPEN, RequestState
from apps.reviews.models import ReviewRequest
from apps.teams import policies
from apps.teams.models import Team
from apps.teams.selectors import teams_of


@dataclass(frozen=True, slots=True)
class Board:
    """The rows of one operator x backend x hardware x workload within one environment class."""

    operator: Operator
    backend: str
    hardware: str
    workload: str
    environment_class: str
    classes: tuple[tuple[str, int], ...]  # environment classes with their number of kernels, newest first
    rows: tuple[BoardRow, ...]


@dataclass(frozen=True, slots=True)
class BoardKey:
    """A board that exists, with how many teams work on it."""

    operator: str
    backend: str
    hardware: str
    workload: str
    teams: int


def _visible_teams(user: Any) -> list[Team]:
    """Teams whose rows this caller may see: the own ones, and those that share theirs."""
    why = policies.may_see_boards(user)
    if why:
        raise Refused(why, code="sign_in")
    return list(Team.objects.filter(Q(pk__in=teams_of(user).values("pk")) | Q(boards_shared=True)))


def boards(user: Any) -> list[BoardKey]:
    """Boards with at least one campaign, by operator.

    Raises:
        Refused: not signed in, and boards are not public.
    """
    slots = Slot.objects.filter(team__in=_visible_teams(user)).filter(
        Q(campaigns__isnull=False) | Q(promotions__isnull=False)
    ).distinct()
    keys = Counter(
        slots.values_list("operator__name", "backend", "hardware__name", "workload").order_by("operator__name")
    )
    return [BoardKey(*key, teams=count) for key, count in keys.items()]


def board(
    user: Any, *, operator: str, backend: str, hardware: str, workload: str, environment_class: str | None = None
) -> Board:
    """The ranking: the best kernel of every campaign and every promoted one, by the newest of its own verdicts.

    Never the luckiest figure: one row per kernel and team, with its newest verdict of the class.

    Raises:
        Refused: not signed in, and boards are not public. NotFound: unknown operator.
    """
    row = Operator.objects.filter(name=operator).first()
    if row is None:
        raise NotFound(f"There is no operator '{operator}' here.")
    teams = _visible_teams(user)
    own = set(teams_of(user).values_list("pk", flat=True))
    slots = {
        slot.team_id: slot for slot in Slot.objects.filter(
            team__in=teams, operator=row, backend=backend, hardware__name=hardware, workload=workload
        ).select_related("team", "operator")
    }
    wanted = _kernels(slots.values())
    verdicts = _newest(slots, wanted, hardware, workload)
    classes = _classes(verdicts)
    chosen = environment_class or (classes[0][0] if classes else "")
    baseline = api.digest(api.baseline_source(operator, backend)) if slots else ""
    facts = _Facts(list(slots.values()))
    rows = [
        _row(slots[team], kernel, verdict, facts, baseline, own=team in own)
        for (team, kernel, klass), verdict in verdicts.items() if klass == chosen
    ]
    return Board(row, backend, hardware, workload, chosen, classes, tuple(ranked(rows)))


def _kernels(slots: Iterable[Slot]) -> set[tuple[int, str]]:
    """(team, kernel) pairs that a board shows."""
    slots = list(slots)
    pairs = set(Campaign.objects.filter(slot__in=slots, incumbent__isnull=False).values_list("team_id", "incumbent_id"))
    pairs |= set(Campaign.objects.filter(slot__in=slots).values_list("team_id", "start_kernel_id"))
    pairs |= set(Promotion.objects.filter(slot__in=slots).values_list("slot__team_id", "kernel_id"))
    pairs |= set(ReviewRequest.objects.filter(slot__in=slots).values_list("team_id", "kernel_id"))
    return pairs


def _newest(
    slots: dict[int, Slot], wanted: set[tuple[int, str]], hardware: str, workload: str
) -> dict[tuple[int, str, str], Verdict]:
    """The newest passed and timed verdict of each pair in each environment class."""
    rows = Verdict.objects.filter(
        team__in=list(slots), kernel__in={kernel for _, kernel in wanted}, hardware=hardware, workload=workload,
        outcome="passed",
    ).exclude(evidence="").order_by("id")
    return {(v.team_id or 0, v.kernel_id, v.environment_class): v for v in rows if (v.team_id, v.kernel_id) in wanted}


def _classes(verdicts: dict[tuple[int, str, str], Verdict]) -> tuple[tuple[str, int], ...]:
    counts = Counter(klass for _, _, klass in verdicts)
    newest: dict[str, int] = {}
    for (_, _, klass), verdict in verdicts.items():
        newest[klass] = max(newest.get(klass, 0), verdict.pk)
    return tuple(sorted(counts.items(), key=lambda item: -newest[item[0]]))


class _Facts:
    """What is known about the kernels of some slots, in a handful of queries."""

    def __init__(self, slots: list[Slot]) -> None:
        self.champions = {(c.slot_id, c.kernel_id) for c in Champion.objects.filter(slot__in=slots)}
        self.states = {slot.pk: slot.state for slot in slots}
        self.quarantined = set(Quarantine.objects.filter(slot__in=slots).values_list("slot_id", "kernel_id"))
        self.promoted = {(p.slot_id, p.kernel_id): p for p in Promotion.objects.filter(slot__in=slots).order_by("id")}
        requests = ReviewRequest.objects.filter(slot__in=slots).order_by("id")
        self.requests = {(row.slot_id, row.kernel_id): row for row in requests}
        rounds = Round.objects.filter(campaign__slot__in=slots, kernel__isnull=False).order_by("id")
        self.rounds = {(r["campaign__slot_id"], r["kernel_id"]): r for r in rounds.values(
            "campaign__slot_id", "kernel_id", "campaign_id", "campaign__agent_kind", "number", "step_tier")}

    def approval(self, slot: Slot, kernel: str) -> str:
        """One word for how far people have looked at a kernel."""
        key = (slot.pk, kernel)
        if key in self.quarantined:
            return "quarantined"
        if key in self.champions and self.states[slot.pk] == "champion":
            return "champion"
        if key in self.promoted:
            return "approved"
        request = self.requests.get(key)
        if request is None:
            return "not reviewed"
        if request.state in REQUEST_OPEN:
            return "waiting for review"
        return str(RequestState(request.state).label)


def _row(slot: Slot, kernel: str, verdict: Verdict, facts: _Facts, baseline: str, *, own: bool) -> BoardRow:
    timing = verdict.document.get("timing") or {}
    ratio = _against_baseline(verdict, timing, baseline)
    made = facts.rounds.get((slot.pk, kernel))
    promotion, request = facts.promoted.get((slot.pk, kernel)), facts.requests.get((slot.pk, kernel))
    tier = promotion.gate_tier if promotion else request.gate_tier if request else made["step_tier"] if made else ""
    by = f"{made['campaign__agent_kind']}, round {made['number']}" if made else "kernel"
    label = "baseline" if kernel == baseline else by
    values = ratio or {}
    return BoardRow(
        team=slot.team.name, own=own, label=label, approval=facts.approval(slot, kernel), tier=tier,
        score=verdict.score if verdict.score is not None else values.get("ratio"), ratio=values.get("ratio"),
        low=values.get("low"), high=values.get("high"), noise=timing.get("noise"),
        evaluator_version=verdict.evaluator_version, measured_at=verdict.created_at, suspicious=verdict.suspicious,
        foreign=verdict.foreign, kernel=kernel if own else None, verdict=verdict.pk if own else None,
        campaign=made["campaign_id"] if own and made else None,
        why_unranked="the baseline, for reference" if kernel == baseline else "",
    )


def _against_baseline(verdict: Verdict, timing: dict[str, Any], baseline: str) -> dict[str, float] | None:
    """The ratio against the baseline: measured as such, or against an incumbent that was the baseline."""
    overall = timing.get("overall", {})
    if "baseline" in overall:
        return overall["baseline"]
    for role, digest in verdict.against.items():
        if digest == baseline and role in overall:
            return overall[role]
    return {"ratio": 1.0, "low": 1.0, "high": 1.0} if verdict.kernel_id == baseline else None
