"""What people do with campaigns: create, start, pause, resume, stop, fork, choose on a plateau, edit hypotheses."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils import timezone

from apps.audit.services import audit_record
from apps.bridge import api
from apps.campaigns.choices import BUDGET_LIMITS, CAMPAIGN_MACHINE, CampaignState, PlateauChoice
from apps.campaigns.jobs.devices import is_dry
from apps.campaigns.models import Campaign
from apps.campaigns.services.acting import act, check_allowed, influence_add
from apps.campaigns.services.endpoints import check_choice
from apps.campaigns.services.projection import open_round, report
from apps.core.errors import Invalid
from apps.core.transitions import transition
from apps.kernels.choices import ContributionKind
from apps.kernels.models import Kernel
from apps.kernels.services import (
    baseline_kernel,
    contribution_add,
    hardware_register,
    kernel_store,
    operators_sync,
    origin_add,
    slot_open,
)
from apps.stream.services import recording
from apps.teams.models import Team, User


def default_name(operator: str, hardware: str, agent_kind: str) -> str:
    """The name of a campaign that nobody named."""
    return f"{operator} on {hardware} with {agent_kind}"


def campaign_create(
    *, team: Team, person: User, goal: dict[str, Any], name: str = "", start_kernel: Kernel | None = None,
    fork_of: Campaign | None = None, token_scope: bool = False,
) -> Campaign:
    """A draft with a checked goal. ``start_kernel`` is what round 0 measures, the shipped baseline by default.

    Raises:
        Refused: the person may not run campaigns in the team.
        Invalid: the goal contradicts itself or the operator; ``key`` names the value.
    """
    check_allowed(person, team, token_scope)
    facts = _checked(goal)
    document = facts.document
    check_choice(document["agent"], budget=document["budget"])
    operators = {row.name: row for row in operators_sync()}
    operator, backend = operators[document["operator"]], document["backend"]
    hardware = hardware_register(name=document["hardware"], backends=[backend])
    with transaction.atomic():
        slot = slot_open(
            team=team, operator=operator, backend=backend, hardware=hardware, workload=document["workload"]
        )
        kernel = start_kernel or baseline_kernel(operator=operator, backend=backend)
        if (kernel.operator_id, kernel.backend) != (operator.pk, backend):
            raise Invalid(f"The kernel to start from is one of {kernel.operator} on {kernel.backend}, the goal asks "
                          f"for {operator} on {backend}.", key="operator")
        origin_add(team=team, kernel=kernel, source="baseline" if start_kernel is None else "fork")
        campaign = Campaign.objects.create(
            team=team, slot=slot, name=name or default_name(str(operator), str(hardware), document["agent"]["kind"]),
            goal=document, goal_digest=facts.digest, grant=document["grant"], operator_version=operator.version,
            agent_kind=document["agent"]["kind"], started_by=person, fork_of=fork_of, start_kernel=kernel,
            incumbent=kernel, state_since=timezone.now(), dry_run=is_dry(hardware.name, backend),
        )
        audit_record(verb="campaign.created", subject=campaign, actor=person, team=team, digest=facts.digest,
                     after=CampaignState.DRAFT)
    return campaign


def _checked(goal: dict[str, Any]) -> api.GoalFacts:
    try:
        return api.goal_check(goal)
    except api.BridgeError as error:
        raise Invalid(error.text, key=error.key, code=error.code) from error


def campaign_start(*, campaign: Campaign, person: User, token_scope: bool = False) -> Campaign:
    """Freeze the goal and let the engine begin.

    Raises:
        Refused, ImpossibleTransition, MovedOn: see the sentence; nothing was changed.
    """
    check_allowed(person, campaign.team, token_scope)
    with recording(campaign.stream, campaign.team.stream) as log:
        now = timezone.now()
        campaign.refresh_from_db()
        transition(campaign, CAMPAIGN_MACHINE, CampaignState.RUNNING, started_at=now, state_since=now)
        report(campaign, log, "campaign.started", {
            "name": campaign.name, "by": person.name, "agent": campaign.agent_kind, "grant": campaign.grant,
        })
        open_round(campaign, 0, log)
        if person.pk != campaign.started_by_id:  # whoever starts a draft of somebody else started it too
            influence_add(campaign=campaign, user=person, source="start")
        audit_record(verb="campaign.started", subject=campaign, actor=person, team=campaign.team,
                     digest=campaign.goal_digest, before=CampaignState.DRAFT, after=CampaignState.RUNNING)
    return campaign


def campaign_pause(
    *, campaign: Campaign, person: User, reason: str = "", token_scope: bool = False
) -> Campaign:
    """Pause: nothing new is leased, an evaluation that runs may end; an answer of a model that comes in is stopped."""
    text = reason.strip() or f"{person.name} paused it."
    return act(campaign, person, "Paused", token_scope, reason=text, code="person", person=person.name)


def campaign_resume(*, campaign: Campaign, person: User, token_scope: bool = False) -> Campaign:
    """Go on."""
    return act(campaign, person, "Resumed", token_scope, person=person.name)


def campaign_stop(*, campaign: Campaign, person: User, reason: str = "", token_scope: bool = False) -> Campaign:
    """End the campaign; its waiting and running jobs are cancelled, everything measured stays."""
    text = reason.strip() or f"{person.name} stopped it."
    return act(campaign, person, "Stopped", token_scope, reason=text, person=person.name)


def plateau_choose(
    *, campaign: Campaign, person: User, choice: str, grant: str | None = None, budget: dict[str, Any] | None = None
) -> Campaign:
    """Choose on a plateau (R22): ``finish``, ``restructure``, ``raise_grant`` (to ``grant``), or ``raise_budget``.

    ``budget`` holds the new limits by name (``rounds``, ``evaluations``, ``seconds``, ``tokens``, ``money``,
    ``turns``; ``None``: no limit); those left out stay. A limit is only raised.
    """
    if choice not in campaign.options:
        open_now = ", ".join(campaign.options) or "none"
        raise Invalid(f"'{choice}' is not open on this plateau. Open: {open_now}.", key="choice")
    allowed = None
    if choice == PlateauChoice.RAISE_BUDGET:
        present = campaign.budget or campaign.goal["budget"]
        strange = set(budget or {}) - set(BUDGET_LIMITS)
        if strange or not budget:
            raise Invalid(f"Name the limits to raise: {', '.join(BUDGET_LIMITS)}.", key="budget")
        allowed = present | budget
    return act(campaign, person, "PlateauChosen", choice=choice, grant=grant, person=person.name, budget=allowed)


def hypotheses_edit(*, campaign: Campaign, person: User, hypotheses: list[dict[str, Any]]) -> Campaign:
    """Replace the ranked list: what is left out is struck, changed texts are the person's.

    ``hypotheses`` holds documents with ``id``, ``direction``, ``function``, ``text``, ``evidence``, ``expected_gain``.
    """
    before = {row.key: (row.direction, row.function, row.text, row.expected_gain) for row in campaign.hypotheses.all()}
    changed = [h["id"] for h in hypotheses if before.get(h.get("id", "")) != (
        h.get("direction"), h.get("function"), h.get("text"), h.get("expected_gain"))]
    campaign = act(campaign, person, "HypothesesEdited", person=person.name, hypotheses=hypotheses)
    campaign.hypotheses.filter(key__in=changed).update(edited_by=person)
    influence_add(campaign=campaign, user=person, source="hypotheses")
    return campaign


def campaign_fork(
    *, campaign: Campaign, person: User, goal: dict[str, Any] | None = None, kernel: Kernel | None = None,
    source: bytes | None = None, name: str = "",
) -> Campaign:
    """A draft from any version: another goal, another kernel to start from, or an edited source.

    Whoever edits a source is a contributor of it and of what is built from it.
    """
    check_allowed(person, campaign.team)
    start = kernel or campaign.incumbent
    if source is not None:
        parent = start
        try:
            api.read_source(source)
            api.normal_digest(source)
        except api.BridgeError as error:
            raise Invalid(error.text, key="source", code=error.code) from error
        start = kernel_store(source=source, operator=campaign.slot.operator, backend=campaign.slot.backend)
        origin_add(team=campaign.team, kernel=start, source=f"edit of campaign:{campaign.pk}", parent=parent)
        contribution_add(team=campaign.team, kernel=start, user=person, kind=ContributionKind.EDITED)
    return campaign_create(
        team=campaign.team, person=person, goal=goal or campaign.goal, name=name or f"fork of {campaign.name}",
        start_kernel=start, fork_of=campaign,
    )
