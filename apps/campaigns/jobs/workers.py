"""Workers report themselves; maintainers drain them and put jobs back; self-tests are recorded."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from apps.audit.services import audit_record
from apps.bridge import api
from apps.campaigns.choices import JobState
from apps.campaigns.jobs.models import Job, SelfTest, Worker
from apps.campaigns.jobs.services import job_enqueue
from apps.core.errors import Invalid, Refused
from apps.core.leases import this_process
from apps.stream.services import recording
from apps.teams import policies
from apps.teams.models import Team, User

BEAT_SECONDS = 10  # a worker that did not report for this long is shown as dead


def worker_beat(
    *, name: str, kind: str, hardware: str = "", backends: list[str] | None = None, isolation: int | None = None,
    proved: list[str] | None = None, environment: dict[str, Any] | None = None, evaluator_version: str = "",
    note: str = "",
) -> Worker:
    """Report this process alive, with what it proved about itself. Announces ``worker.up`` when it is a new one."""
    me, now = this_process(), timezone.now()
    facts: dict[str, Any] = {
        "kind": kind, "beat_at": now, "owner_host": me.host, "owner_boot": me.boot, "owner_pid": me.pid,
        "owner_start": me.start, "lease_expires_at": now + timedelta(seconds=BEAT_SECONDS),
    }
    given = {"hardware": hardware, "backends": backends, "isolation": isolation, "proved": proved,
             "environment": environment, "evaluator_version": evaluator_version}
    facts |= {key: value for key, value in given.items() if value not in (None, "")} | {"note": note}
    row = Worker.objects.filter(name=name).first()
    seen = row.lease_expires_at if row is not None and row.owner() == me else None
    if row is not None and seen is not None and seen > now - timedelta(seconds=BEAT_SECONDS):
        Worker.objects.filter(pk=row.pk).update(**facts)
        row.refresh_from_db()
        return row
    with recording(*team_streams()) as log:
        row, _ = Worker.objects.update_or_create(name=name, defaults={**facts, "started_at": now, "draining": False})
        for stream in team_streams():
            log.append(stream, "worker.up", {"name": name, "kind": kind, "hardware": row.hardware})
    return row


def worker_gone(*, name: str, reason: str = "") -> None:
    """Announce that a worker ended (the supervisor saw it, or it says so itself). Idempotent."""
    row = Worker.objects.filter(name=name, lease_expires_at__isnull=False).first()
    if row is None:
        return
    with recording(*team_streams()) as log:
        if Worker.objects.filter(pk=row.pk, fence=row.fence, lease_expires_at__isnull=False).update(
            lease_expires_at=None, note=reason
        ):
            for stream in team_streams():
                log.append(stream, "worker.down", {"name": name, "kind": row.kind, "reason": reason})


def team_streams() -> list[str]:
    """Streams of all teams: what concerns the installation is told on each."""
    return [team.stream for team in Team.objects.all()]


def worker_drain(*, worker: Worker, person: User, team: Team | None, draining: bool = True) -> None:
    """Let a worker end its job and take no other (or take jobs again)."""
    why = policies.may_operate(person, team)
    if why:
        raise Refused(why)
    with transaction.atomic():
        Worker.objects.filter(pk=worker.pk).update(draining=draining)
        audit_record(verb="worker.drained" if draining else "worker.undrained", subject=worker, actor=person, team=team)


def job_requeue(*, job: Job, person: User) -> Job:
    """Order an ended job anew as a new row; the old one stays as it is.

    Raises:
        Refused: only maintainers; Invalid: the job did not end in an error.
    """
    why = policies.may_operate(person, job.team)
    if why:
        raise Refused(why)
    if job.state not in (JobState.ERRORED, JobState.FAILED):
        raise Invalid(f"This job is '{job.state}'; only errored or failed ones are put back.")
    if job.kernel is None:
        raise Invalid("This job names no kernel; there is nothing to put back.")
    key = uuid.uuid4()
    with transaction.atomic():
        fresh = job_enqueue(purpose=job.purpose, request={**job.request, "job": str(key)}, team=job.team,
                            kernel=job.kernel, campaign=job.campaign, round=job.round, job_id=key)
        audit_record(verb="job.requeued", subject=job, actor=person, team=job.team, data={"as": str(key)})
    return fresh


def selftest_record(
    *, evaluator_version: str, environment_class: str, isolation: int, backend: str, quick: bool, passed: bool,
    report: dict[str, Any],
) -> SelfTest:
    """Keep the result of a self-test pass; promotions wait while the newest one of an environment failed."""
    with recording(*team_streams()) as log:
        row = SelfTest.objects.create(
            evaluator_version=evaluator_version, environment_class=environment_class, isolation=isolation,
            backend=backend, quick=quick, state="passed" if passed else "failed", report=report, at=timezone.now(),
        )
        for stream in team_streams():
            log.append(stream, f"selftest.{row.state}", {"environment_class": environment_class, "quick": quick})
    return row


def selftest_gap(environment_class: str, isolation: int, backend: str) -> str | None:
    """Why promotions in this environment class must wait for the self-test; ``None`` when it passed."""
    rows = SelfTest.objects.filter(
        evaluator_version=api.evaluator_version(), environment_class=environment_class, isolation=isolation,
        backend__in=["", backend],
    ).order_by("-id")
    newest, whole = rows.first(), rows.filter(quick=False).first()
    if newest is None:
        return ("The evaluator's self-test has not passed yet on this device with this version. It runs in the "
                "background; promotions wait for it.")
    # A pass over the quick subset does not undo a failure of the whole corpus.
    if newest.state != "passed" or (whole is not None and whole.state != "passed"):
        return ("The evaluator's self-test failed: a known cheat slipped through or an honest kernel was refused. "
                "Promotions wait; a maintainer can run it again on the system page.")
    return None
