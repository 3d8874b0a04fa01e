"""Telling the engine what happened. One function appends a result, folds all of them and brings the rows in line.

``EngineResult`` rows are the truth; campaign state, rounds and hypotheses follow from their fold in the same
transaction, under the lock of the campaign's stream, so that nothing can be told twice or out of order.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db.models import F, Max, Q
from django.utils import timezone

from apps.bridge import api
from apps.campaigns.choices import CAMPAIGN_ACTIVE
from apps.campaigns.models import Campaign, EngineResult
from apps.campaigns.services.projection import project
from apps.core.errors import ImpossibleTransition, LeaseLost, Refused
from apps.core.leases import NO_OWNER, this_process
from apps.kernels.models import Verdict
from apps.stream.services import Log, recording

LEASE_SECONDS = 30


def start_document(campaign: Campaign) -> dict[str, Any]:
    """What the fold starts from: the frozen goal and the kernel of round 0."""
    assert campaign.start_kernel is not None
    return api.engine_start(campaign.goal, bytes(campaign.start_kernel.source), campaign.operator_version)


def results_of(campaign: Campaign) -> list[dict[str, Any]]:
    """All result documents in order."""
    return list(EngineResult.objects.filter(campaign=campaign).order_by("seq").values_list("document", flat=True))


def engine_state(campaign: Campaign) -> Any:
    """The engine's state object, rebuilt from rows. The one function that does this."""
    return api.engine_state(start_document(campaign), results_of(campaign))


def tell(
    campaign: Campaign, document: dict[str, Any], log: Log, *, fence: int | None = None, verdict: Verdict | None = None
) -> api.EngineFacts:
    """Append one result inside an open ``recording`` of the campaign's and the team's streams.

    Raises:
        LeaseLost: ``fence`` is not the present one.
        Refused: the verdict was imported; a campaign goes by what was measured here.
        ImpossibleTransition: the engine says that this cannot follow; nothing was written.
    """
    if verdict is not None and verdict.foreign:
        raise Refused("This verdict was imported. A campaign goes by verdicts that were made here alone; order a fresh "
                      "one on the same kernel.")
    campaign.refresh_from_db()
    if fence is not None and campaign.fence != fence:
        raise LeaseLost(f"Another engine took over {campaign}; what this one found out was not recorded.")
    before = results_of(campaign)
    try:
        facts = api.facts_of(api.engine_state(start_document(campaign), [*before, document]))
    except api.BridgeError as error:
        raise ImpossibleTransition(error.text, code=error.code) from error
    last = EngineResult.objects.filter(campaign=campaign).aggregate(last=Max("seq"))["last"] or 0
    EngineResult.objects.create(
        campaign=campaign, seq=last + 1, kind=document["kind"], document=document, at=timezone.now()
    )
    project(campaign, facts, log, kind=document["kind"], verdict=verdict)
    return facts


def engine_tell(
    *, campaign: Campaign, document: dict[str, Any], fence: int | None = None, verdict: Verdict | None = None
) -> api.EngineFacts:
    """``tell`` in a transaction of its own: what the engine loop calls for every result."""
    with recording(campaign.stream, campaign.team.stream) as log:
        return tell(campaign, document, log, fence=fence, verdict=verdict)


def engine_tell_verdict(*, campaign: Campaign, fence: int, round_number: int, verdict: Verdict) -> api.EngineFacts:
    """Tell the engine a recorded verdict of round ``round_number`` (0 is the baseline)."""
    document = api.evaluated_result(round_number, verdict.document)
    return engine_tell(campaign=campaign, document=document, fence=fence, verdict=verdict)


def engine_lease(*, campaign: Campaign, seconds: float = LEASE_SECONDS) -> int | None:
    """Take an active campaign for this process. Returns the fencing token, ``None`` when another live process has it.

    A lease whose owner is dead is taken over at once, one on another host when it has expired.
    """
    campaign.refresh_from_db()
    owner = campaign.owner()
    me = this_process()
    now = timezone.now()
    expired = campaign.lease_expires_at is None or campaign.lease_expires_at <= now
    if owner is not None and owner != me and not expired and owner.alive() is not False:
        return None
    taken = Campaign.objects.filter(pk=campaign.pk, fence=campaign.fence, state__in=CAMPAIGN_ACTIVE).update(
        fence=F("fence") + 1, owner_host=me.host, owner_boot=me.boot, owner_pid=me.pid, owner_start=me.start,
        lease_expires_at=now + timedelta(seconds=seconds),
    )
    if not taken:
        return None
    campaign.refresh_from_db()
    return campaign.fence


def engine_renew(*, campaign: Campaign, fence: int, seconds: float = LEASE_SECONDS) -> None:
    """Keep the lease.

    Raises:
        LeaseLost: another process took over.
    """
    until = timezone.now() + timedelta(seconds=seconds)
    if not Campaign.objects.filter(pk=campaign.pk, fence=fence).update(lease_expires_at=until):
        raise LeaseLost(f"Another engine took over {campaign}.")


def engine_release(*, campaign: Campaign, fence: int) -> None:
    """Give the lease back; does nothing when it is somebody else's by now."""
    Campaign.objects.filter(pk=campaign.pk, fence=fence).update(**NO_OWNER)


def campaigns_to_run() -> list[Campaign]:
    """Active campaigns that no live process holds (a dead owner on this host does not count), oldest first."""
    now = timezone.now()
    rows = Campaign.objects.filter(state__in=CAMPAIGN_ACTIVE, imported_from="").select_related(
        "team", "slot__operator", "slot__hardware", "start_kernel"
    ).order_by("id")
    free = rows.filter(Q(owner_pid__isnull=True) | Q(lease_expires_at__lte=now))
    held = rows.exclude(Q(owner_pid__isnull=True) | Q(lease_expires_at__lte=now))
    orphaned = [c for c in held if (owner := c.owner()) is not None and owner.alive() is False]
    return sorted([*free, *orphaned], key=lambda campaign: campaign.pk)
