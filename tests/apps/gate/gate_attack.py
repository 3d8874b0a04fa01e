"""Helpers of the attacks: what the database refuses, and requests pushed further than they may be."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone
from gate_world import World

from apps.kernels.models import Promotion
from apps.reviews.models import ReviewRequest


def refused_by_database(action: Any, match: str) -> None:
    with pytest.raises(IntegrityError, match=match), transaction.atomic():
        action()


def verified(world: World, source: bytes, *approvers: Any) -> ReviewRequest:
    """A request in verification whose verification passed; approvals as given, forced through the states."""
    request = world.request(source)
    for person in approvers:
        world.decide(request, person)
    request.refresh_from_db()
    if request.state == "open":
        ReviewRequest.objects.filter(pk=request.pk).update(state="approved")
    job = world.job(request.kernel, purpose="promotion", against={"baseline": bytes(request.base.source)})
    ReviewRequest.objects.filter(pk=request.pk).update(state="verifying", verify_job=job)
    world.answer(job)
    request.refresh_from_db()
    return request


def promotion_of(asked: ReviewRequest, **changes: Any) -> Promotion:
    facts = {
        "slot": asked.slot, "kernel": asked.kernel, "kind": "reviewed", "request": asked,
        "verdict": asked.verify_job.verdict, "previous": None, "gate_tier": asked.gate_tier,
        "required_approvals": 2 if asked.gate_tier == "heavy" else 1, "policy_version": 1, "at": timezone.now(),
    }
    return Promotion(**{**facts, **changes})


