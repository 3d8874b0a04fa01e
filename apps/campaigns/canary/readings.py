"""Keeping readings, and opening and ending drifts by them."""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice

from django.db.models import Q
from django.utils import timezone

from apps.audit.services import audit_record
from apps.campaigns.canary import drift
from apps.campaigns.canary.models import CanaryBase, CanaryDrift, CanaryReading
from apps.campaigns.choices import JOB_OPEN, JobState
from apps.campaigns.jobs.workers import team_streams
from apps.kernels.models import Verdict
from apps.stream.services import Log, recording
from apps.teams.models import User


def collect(base: CanaryBase) -> None:
    """Take an ended job's verdict as a reading; a job that failed leaves none and is ordered again later."""
    job = base.job
    if job is None or job.state in JOB_OPEN:
        return
    verdict = job.verdict
    if job.state != JobState.SUCCEEDED or verdict is None or not _says_something(base, verdict):
        CanaryBase.objects.filter(pk=base.pk, job=job).update(job=None)
        return
    with recording(*team_streams()) as log:
        if CanaryBase.objects.filter(pk=base.pk, job=job).update(job=None):
            base.refresh_from_db()
            reading = _reading(base, verdict)
            if base.ended_at is None:
                _follow(base, reading, log)


def _says_something(base: CanaryBase, verdict: Verdict) -> bool:
    """Whether it is about the device: its evaluator worked, and no interpreter stood in."""
    return verdict.document.get("blame") != "infrastructure" and verdict.hardware == base.hardware


def _reading(base: CanaryBase, verdict: Verdict) -> CanaryReading:
    timing = verdict.document.get("timing") or {}
    shapes = timing.get("shapes") or ()
    reading = CanaryReading(
        base=base, verdict=verdict, environment_class=verdict.environment_class, outcome=verdict.outcome,
        medians={shape["shape"]: shape["median_us"] for shape in shapes},
        weights={shape["shape"]: shape["weight"] for shape in shapes}, noise=timing.get("noise"),
        at=verdict.created_at,
    )
    if min(reading.medians.values(), default=0.0) <= 0:
        reading.medians, reading.noise = {}, None  # no time at all is no figure
    reference = reference_of(base, verdict.environment_class, reading.medians)
    if not reading.medians:
        reading.side = 1  # a frozen kernel that the evaluator refuses now says that something is wrong here
    elif reference is not None:
        lasts = base.drifts.filter(ended_at__isnull=True).exists()
        found = drift.judge(figures_of(reading), reference, drifting=lasts)
        reading.shift, reading.margin, reading.side = found.shift, found.margin, found.side
    reading.save()
    return reading


def figures_of(reading: CanaryReading) -> drift.Figures:
    """A reading as the pure functions take it."""
    return drift.Figures(reading.medians, reading.weights, reading.noise or 0.0)


def reference_of(base: CanaryBase, environment_class: str, shapes: Collection[str]) -> drift.Figures | None:
    """What readings of these shapes are compared with in an environment class; ``None`` while too few were taken.

    A workload of other shapes begins a reference of its own: no figure of the old one says anything about it.
    """
    rows = base.readings.filter(environment_class=environment_class, noise__isnull=False).order_by("id")
    alike = (figures_of(row) for row in rows.iterator() if set(row.medians) == set(shapes))
    return drift.reference_of(list(islice(alike, drift.REFERENCE_READINGS)))


def _follow(base: CanaryBase, reading: CanaryReading, log: Log) -> None:
    """Open or end the drift of a base after a reading."""
    present = CanaryDrift.objects.filter(base=base, ended_at__isnull=True).first()
    if present is not None and present.environment_class != reading.environment_class:
        drift_end(present, "The environment class of the device changed; a new reference begins.", log)
        present = None
    judged = base.readings.filter(environment_class=reading.environment_class, side__isnull=False).order_by("id")
    sides = [side or 0 for side in judged.values_list("side", flat=True)]
    now = drift.drifting(sides, before=present is not None)
    if now and present is None:
        _open(base, reading, log)
    elif not now and present is not None:
        drift_end(present, f"{drift.IN_A_ROW} readings in a row were within noise of the reference again.", log)


def _open(base: CanaryBase, reading: CanaryReading, log: Log) -> None:
    steady = base.readings.filter(environment_class=reading.environment_class, pk__lt=reading.pk).filter(
        Q(side=0) | Q(side__isnull=True)).order_by("-id").first()
    said = (f"takes {reading.shift:.3f} times what its reference took, beyond ±{reading.margin:.1%}"
            if reading.shift is not None and reading.margin is not None
            else f"is refused by the evaluator now ({reading.outcome.replace('_', ' ')})")
    row = CanaryDrift.objects.create(
        base=base, hardware=base.hardware, environment_class=reading.environment_class,
        since=steady.at if steady is not None else base.begun_at, opened_at=timezone.now(),
        text=f"{base.hardware} drifts: its frozen baseline of {base.operator} on {base.backend} {said}, "
             f"{drift.IN_A_ROW} readings in a row. Promotions on it wait until {drift.IN_A_ROW} readings are back "
             "within noise, or a maintainer begins a new reference with a reason on the system page.",
    )
    for stream in team_streams():
        log.append(stream, "canary.drifted", {"hardware": base.hardware, "drift": row.pk, "text": row.text})
    audit_record(verb="canary.drifted", subject=row, actor=None, team=None, digest=base.kernel_id, reason=row.text)


def drift_end(row: CanaryDrift, because: str, log: Log, by: User | None = None) -> None:
    """End a drift inside an open transaction; ended ones stay as they are."""
    changed = CanaryDrift.objects.filter(pk=row.pk, ended_at__isnull=True).update(
        ended_at=timezone.now(), ended_because=because, ended_by=by)
    if not changed:
        return
    for stream in team_streams():
        log.append(stream, "canary.steady", {"hardware": row.hardware, "drift": row.pk,
                                             "text": f"{row.hardware} is steady again. {because}"})
    audit_record(verb="canary.steady", subject=row, actor=by, team=None, digest=row.base.kernel_id, reason=because)
