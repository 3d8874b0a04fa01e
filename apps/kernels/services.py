"""Writing operators, hardware, kernels, blobs, contributions and slots. Promotions are written in ``apps.reviews``."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from apps.bridge import api
from apps.core.errors import Invalid
from apps.kernels.models import Blob, Contribution, Hardware, Kernel, KernelOrigin, Operator, Slot
from apps.teams.models import Team, User


def operators_sync() -> list[Operator]:
    """Make the operator rows what the harness declares; operators that vanished become inactive."""
    rows = []
    with transaction.atomic():
        for facts in api.operators():
            row, _ = Operator.objects.update_or_create(
                name=facts.name, defaults={"version": facts.version, "title": facts.title, "active": True}
            )
            rows.append(row)
        Operator.objects.exclude(pk__in=[row.pk for row in rows]).update(active=False)
    return rows


def hardware_register(
    *, name: str, title: str = "", backends: list[str] | None = None, facts: dict[str, Any] | None = None
) -> Hardware:
    """A device that campaigns may name; facts given later complete the row."""
    row, created = Hardware.objects.get_or_create(
        name=name, defaults={"title": title, "backends": backends or [], "facts": facts or {}}
    )
    if not created:
        merged = sorted({*row.backends, *(backends or [])})
        Hardware.objects.filter(pk=row.pk).update(
            title=title or row.title, backends=merged, facts=facts or row.facts
        )
        row.refresh_from_db()
    return row


def kernel_store(*, source: bytes, operator: Operator, backend: str) -> Kernel:
    """Keep a kernel's exact bytes under their digest; storing the same bytes again finds the first row.

    A source that does not parse is kept too (every version can be fetched); its normal digest is then its digest.

    Raises:
        Invalid: the same bytes belong to another operator or backend already.
    """
    digest = api.digest(source)
    try:
        normal = api.normal_digest(source)
    except api.BridgeError:
        normal = digest
    kernel, _ = Kernel.objects.get_or_create(
        digest=digest, defaults={"source": source, "normal_digest": normal, "operator": operator, "backend": backend}
    )
    if (kernel.operator_id, kernel.backend) != (operator.pk, backend):
        raise Invalid(f"These bytes are stored as a kernel of {kernel.operator} on {kernel.backend}; they cannot be "
                      f"one of {operator} on {backend} too.", key="source")
    return kernel


def origin_add(*, team: Team, kernel: Kernel, source: str, parent: Kernel | None = None) -> KernelOrigin:
    """Note where a team has a kernel from (``baseline``, ``campaign:12``, ``fork``, ``import``)."""
    origin, _ = KernelOrigin.objects.get_or_create(
        team=team, kernel=kernel, source=source, defaults={"parent": parent}
    )
    return origin


def contribution_add(*, team: Team, kernel: Kernel, user: User, kind: str) -> Contribution:
    """Note that a person had a hand in this kernel and so may not approve it."""
    row, _ = Contribution.objects.get_or_create(team=team, kernel=kernel, user=user, kind=kind)
    return row


def blob_store(*, data: bytes) -> Blob:
    """Keep bytes under their digest."""
    blob, _ = Blob.objects.get_or_create(digest=api.digest(data), defaults={"data": data})
    return blob


def slot_open(*, team: Team, operator: Operator, backend: str, hardware: Hardware, workload: str) -> Slot:
    """The slot of these five, empty if it is new.

    Raises:
        Invalid: the operator has no such backend or workload.
    """
    facts = {w.name: w for w in api.operator(operator.name).workloads}
    if workload not in facts or backend not in facts[workload].shapes:
        known = ", ".join(f"{w.name} ({', '.join(w.shapes)})" for w in facts.values())
        raise Invalid(f"{operator} is not measured on workload '{workload}' with {backend}. Known: {known}.",
                      key="workload")
    slot, _ = Slot.objects.get_or_create(
        team=team, operator=operator, backend=backend, hardware=hardware, workload=workload
    )
    return slot


def baseline_kernel(*, operator: Operator, backend: str) -> Kernel:
    """The operator's shipped baseline as a kernel row."""
    return kernel_store(source=api.baseline_source(operator.name, backend), operator=operator, backend=backend)
