"""One selector for every board, page and export."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import F, Q

from apps.bridge import api
from apps.campaigns.canary.selectors import drift_windows, in_doubt
from apps.campaigns.models import Campaign, Round
from apps.campaigns.screens.listing import roof_of
from apps.core.errors import NotFound, Refused
from apps.kernels.choices import SlotState
from apps.kernels.models import Champion, Operator, Promotion, Quarantine, Slot, Verdict
from apps.kernels.selectors import in_order
from apps.leaderboards.ranking import BoardRow, ranked, with_libraries
from apps.reviews.choices import REQUEST_OPEN, RequestState
from apps.reviews.models import ReviewRequest
from apps.reviews.rechecks import outdated_slots
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
    """A board that exists, with how many teams work on it and how many of them have a champion there."""

    operator: str
    backend: str
    hardware: str
    workload: str
    teams: int
    champions: int = 0


def _visible_teams(user: Any) -> list[Team]:
    """Teams whose rows this caller may see: the own ones, and those that share theirs."""
    why = policies.may_see_boards(user)
    if why:
        raise Refused(why, code="sign_in")
    return list(Team.objects.filter(Q(pk__in=teams_of(user).values("pk")) | Q(boards_shared=True)))


def boards(user: Any) -> list[BoardKey]:
    """Boards with at least one campaign, operators in their listing order.

    Raises:
        Refused: not signed in, and boards are not public.
    """
    slots = Slot.objects.filter(team__in=_visible_teams(user)).filter(
        Q(campaigns__isnull=False) | Q(promotions__isnull=False)
    ).distinct()
    named = slots.values_list("operator__name", "backend", "hardware__name", "workload").order_by("operator__name")
    keys, led = Counter(named), Counter(named.filter(state=SlotState.CHAMPION))
    found = [BoardKey(*key, teams=count, champions=led[key]) for key, count in keys.items()]
    return in_order(found, lambda key: key.operator)


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
    newest = _newest(slots, wanted, hardware, workload)
    classes = _classes(newest)
    chosen = environment_class or (classes[0][0] if classes else "")
    verdicts = _verdicts(pk for (_, _, klass), pk in newest.items() if klass == chosen)
    baseline = api.digest(api.baseline_source(operator, backend)) if slots else ""
    facts, windows = _Facts(list(slots.values())), drift_windows(hardware)
    rows = [
        _row(slots[verdict.team_id], verdict, facts, baseline, own=verdict.team_id in own,
             drifted=in_doubt(windows, verdict.created_at))
        for verdict in verdicts if verdict.team_id is not None
    ]
    shown = with_libraries(ranked(rows), _libraries(chosen, operator, workload)) if rows else []
    return Board(row, backend, hardware, workload, chosen, classes, tuple(shown))


def _libraries(environment_class: str, operator: str, workload: str) -> list[BoardRow]:
    """Library peers measured in this environment class as reference rows; absent ones are named absent."""
    def why(one: api.LibraryFacts) -> str:
        if one.absent or one.over_baseline is not None:
            return one.absent or "a library, for reference"
        return f"right and timed on {one.shapes} of {one.of} shapes"

    return [
        BoardRow(team=one.name, own=False, label=f"library {one.version}".strip(), approval="", tier="", score=None,
                 ratio=one.over_baseline, low=None, high=None, noise=None, evaluator_version="", measured_at=None,
                 library=True, why_unranked=why(one), medians_us=one.medians_us)
        for one in api.libraries(environment_class, operator, workload)
    ]


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
) -> dict[tuple[int, str, str], int]:
    """The key of the newest passed and timed verdict of each pair in each environment class; an imported one only where
    none was made here."""
    rows = Verdict.objects.filter(
        team__in=list(slots), kernel__in={kernel for _, kernel in wanted}, hardware=hardware, workload=workload,
        outcome="passed",
    ).exclude(evidence="").order_by("-foreign", "id").values_list("team_id", "kernel_id", "environment_class", "id")
    return {(team, kernel, klass): pk for team, kernel, klass, pk in rows if team and (team, kernel) in wanted}


def _verdicts(keys: Iterable[int]) -> list[Verdict]:
    """Verdicts with the facts of their documents that a board shows; the documents themselves stay unread."""
    return list(Verdict.objects.filter(pk__in=list(keys)).defer("document").annotate(
        overall=F("document__timing__overall"), noise=F("document__timing__noise"),
        shapes=F("document__timing__shapes")).order_by("id"))


def _classes(verdicts: dict[tuple[int, str, str], int]) -> tuple[tuple[str, int], ...]:
    counts = Counter(klass for _, _, klass in verdicts)
    newest: dict[str, int] = {}
    for (_, _, klass), pk in verdicts.items():
        newest[klass] = max(newest.get(klass, 0), pk)
    return tuple(sorted(counts.items(), key=lambda item: -newest[item[0]]))


class _Facts:
    """What is known about the kernels of some slots, in a handful of queries."""

    def __init__(self, slots: list[Slot]) -> None:
        champions = list(Champion.objects.filter(slot__in=slots).select_related("slot__hardware"))
        self.champions = {(c.slot_id, c.kernel_id) for c in champions}
        self.outdated = outdated_slots(champions)
        self.states = {slot.pk: slot.state for slot in slots}
        self.quarantined = set(Quarantine.objects.filter(slot__in=slots).values_list("slot_id", "kernel_id"))
        promoted = Promotion.objects.filter(slot__in=slots).order_by("id").only("slot", "kernel", "gate_tier")
        self.promoted = {(row.slot_id, row.kernel_id): row for row in promoted}
        requests = ReviewRequest.objects.filter(slot__in=slots).order_by("id")
        requests = requests.only("slot", "kernel", "gate_tier", "state")
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


def _row(slot: Slot, verdict: Any, facts: _Facts, baseline: str, *, own: bool, drifted: bool) -> BoardRow:
    kernel = verdict.kernel_id
    ratio = _against_baseline(verdict, verdict.overall or {}, baseline)
    made = facts.rounds.get((slot.pk, kernel))
    promotion, request = facts.promoted.get((slot.pk, kernel)), facts.requests.get((slot.pk, kernel))
    tier = promotion.gate_tier if promotion else request.gate_tier if request else made["step_tier"] if made else ""
    by = f"{made['campaign__agent_kind']}, round {made['number']}" if made else "kernel"
    label = "baseline" if kernel == baseline else by
    values = ratio or {}
    return BoardRow(
        team=slot.team.name, own=own, label=label, approval=facts.approval(slot, kernel), tier=tier,
        score=verdict.score if verdict.score is not None else values.get("ratio"), ratio=values.get("ratio"),
        low=values.get("low"), high=values.get("high"), noise=verdict.noise,
        evaluator_version=verdict.evaluator_version, measured_at=verdict.created_at, suspicious=verdict.suspicious,
        foreign=verdict.foreign, evidence=verdict.evidence, kernel=kernel if own else None,
        verdict=verdict.pk if own else None,
        campaign=made["campaign_id"] if own and made else None,
        why_unranked="the baseline, for reference" if kernel == baseline else "", drifted=drifted,
        reverifying=(slot.pk, kernel) in facts.champions and slot.pk in facts.outdated, roof=roof_of(verdict.shapes),
        medians_us=tuple((shape["shape"], shape["median_us"]) for shape in verdict.shapes or ()),
    )


def _against_baseline(verdict: Verdict, overall: dict[str, Any], baseline: str) -> dict[str, float] | None:
    """The ratio against the baseline: measured as such, or against an incumbent that was the baseline."""
    if "baseline" in overall:
        return overall["baseline"]
    for role, digest in verdict.against.items():
        if digest == baseline and role in overall:
            return overall[role]
    return {"ratio": 1.0, "low": 1.0, "high": 1.0} if verdict.kernel_id == baseline else None
