"""What a request binds to, and whether that still holds; recomputed from stored bytes and present rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from apps.bridge import api
from apps.campaigns.jobs.selectors import environment_class_now
from apps.campaigns.models import Campaign
from apps.kernels.models import Kernel, Quarantine, Slot, Verdict
from apps.kernels.selectors import base_of
from apps.kernels.services import baseline_kernel
from apps.reviews.models import ReviewRequest

NAMES = {
    "operator_version": "the operator's version", "workload": "the workload", "goal_digest": "the goal",
    "evaluator_version": "the evaluator's version", "environment_class": "the environment class of the device",
}


@dataclass(frozen=True, slots=True)
class GateTier:
    """The tier that the gate asks by, and what it was computed against."""

    tier: str
    why: tuple[dict[str, Any], ...]
    base: Kernel
    champion: Kernel | None


class BytesDiffer(Exception):
    """Stored bytes do not hash to the digest they are filed under: fail closed."""


def intact(kernel: Kernel) -> bytes:
    """The stored bytes, whose digest is computed anew.

    Raises:
        BytesDiffer: they are not what the digest says.
    """
    data = bytes(kernel.source)
    if api.digest(data) != kernel.digest:
        raise BytesDiffer(f"The stored bytes of {kernel.short} do not have this digest. Nothing is promoted from them; "
                          "restore the database from a backup.")
    return data


def normal_digests(kernel: Kernel) -> frozenset[str]:
    """Digests of the normalised tree to look vetoes and contributors up by: the stored one, and the one of the stored
    bytes. They differ where the column was tampered with, or where the normal form became another one since."""
    return frozenset({kernel.normal_digest, _normal_of(bytes(kernel.source))})


@lru_cache(maxsize=256)
def _normal_of(data: bytes) -> str:
    try:
        return api.normal_digest(data)
    except api.BridgeError:
        return api.digest(data)  # what is stored for a source that does not parse


def gate_tier(slot: Slot, kernel: Kernel) -> GateTier:
    """Candidate against the slot's champion, or the shipped baseline while the slot is empty, from stored bytes.

    Raises:
        BytesDiffer, api.BridgeError: the tier cannot be computed, so nothing passes.
    """
    champion, _ = base_of(slot)
    base = champion or baseline_kernel(operator=slot.operator, backend=slot.backend)
    facts = api.classify(intact(base), intact(kernel), slot.operator.name, slot.backend)
    return GateTier(facts.tier, facts.why, base, champion)


def conditions_now(slot: Slot, campaign: Campaign | None, verdict: Verdict) -> dict[str, str]:
    """Operator version, workload, goal, evaluator version and environment class as they are at present.

    The environment is that of the newest verdict made here on this device with this backend.
    """
    return {
        "operator_version": api.operator(slot.operator.name).version,
        "workload": slot.workload,
        "goal_digest": campaign.goal_digest if campaign is not None else verdict.goal_digest,
        "evaluator_version": api.evaluator_version(),
        "environment_class": environment_class_now(slot.hardware.name, slot.backend) or verdict.environment_class,
    }


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a request is stale: a code and the sentence shown with it."""

    code: str
    text: str


def staleness(request: ReviewRequest) -> Cause | None:
    """What changed since the request opened; ``None`` while everything it is bound to still holds."""
    slot = request.slot
    champion, _ = base_of(slot)
    if (champion.pk if champion else None) != request.champion_id:
        now = f"kernel {champion.short}" if champion else "none"
        return Cause("champion_moved", f"The champion of the slot changed: it is now {now}. The tier and the "
                                       "comparison refer to the old one.")
    if Quarantine.objects.filter(slot=slot, kernel=request.champion_id, at__gt=request.opened_at).exists():
        return Cause("champion_quarantined", "The champion that it was compared with was quarantined since: the tier "
                                             "and the comparison rest on a kernel that is set aside.")
    if request.policy_version != slot.team.policy_version:
        return Cause("policy_changed", f"The team's gate policy changed from version {request.policy_version} to "
                                       f"{slot.team.policy_version}.")
    conditions = conditions_now(slot, request.campaign, request.verdict)
    if api.digest_document(conditions) != request.conditions_digest:
        moved = [NAMES[key] for key, value in conditions.items() if request.conditions.get(key) != value]
        return Cause("conditions_changed", f"What the verdict was made under changed: {', '.join(moved)}.")
    try:
        present = gate_tier(slot, request.kernel)
    except (BytesDiffer, api.BridgeError) as error:
        return Cause("tier_unknown", f"The gate tier cannot be computed: {error}")
    if present.base.pk != request.base_id:
        return Cause("baseline_changed", "The operator's shipped baseline changed.")
    if present.tier != request.gate_tier:
        return Cause("tier_changed", f"The gate tier is now {present.tier}, it was {request.gate_tier}.")
    newer = Verdict.objects.filter(
        kernel=request.kernel_id, team=request.team_id, workload=slot.workload, hardware=slot.hardware.name,
        foreign=False, pk__gt=request.verdict_id, purpose__in=["round", "probe"],
    ).exclude(outcome__in=["passed", "infra_error"]).first()
    if newer is not None:
        return Cause("verdict_superseded", f"A newer verdict on the same bytes says {newer.outcome}.")
    return None
