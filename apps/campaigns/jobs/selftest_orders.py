"""A maintainer asks for the evaluator's self-test; the device's worker runs it once nobody waits for the device."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.utils import timezone

from apps.audit.services import audit_record
from apps.campaigns.jobs.models import SelfTest, SelfTestOrder, Worker
from apps.core.errors import Refused
from apps.teams import policies
from apps.teams.models import Team, User


def selftest_order(*, worker: Worker, quick: bool, person: User, team: Team | None) -> SelfTestOrder:
    """Ask for a pass on the device of ``worker``; a second order of the same kind before the first ran is the first.

    Raises:
        Refused: no maintainer.
    """
    why = policies.may_operate(person, team)
    if why:
        raise Refused(why)
    with transaction.atomic():
        waiting = SelfTestOrder.objects.filter(hardware=worker.hardware, quick=quick, test__isnull=True).first()
        if waiting is not None:
            return waiting
        order = SelfTestOrder.objects.create(hardware=worker.hardware, quick=quick, by=person, at=timezone.now())
        audit_record(verb="selftest.ordered", subject=order, actor=person, team=team,
                     data={"hardware": worker.hardware, "quick": quick})
    return order


def order_waits(hardware: str) -> SelfTestOrder | None:
    """The oldest order that no pass has answered."""
    return SelfTestOrder.objects.filter(hardware=hardware, test__isnull=True).order_by("id").first()


def orders_answer(*, hardware: str, test: SelfTest, began: datetime) -> None:
    """A pass answers what was asked for before it began; a whole one also answers orders of the quick subset."""
    waiting = SelfTestOrder.objects.filter(hardware=hardware, test__isnull=True, at__lte=began)
    (waiting.filter(quick=True) if test.quick else waiting).update(test=test)
