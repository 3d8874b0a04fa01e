"""The queue: priorities, fencing, dead owners, attempts; a verdict and the end of its job are one."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from gate_world import HARDWARE, World, light, medium, verdict_document

from apps.campaigns.jobs.selectors import jobs_ahead, workers
from apps.campaigns.jobs.services import (
    job_cancel,
    job_complete,
    job_fail,
    job_heartbeat,
    job_lease,
    job_progress,
    jobs_reap,
)
from apps.campaigns.jobs.workers import worker_beat, worker_gone
from apps.campaigns.models import Job
from apps.campaigns.services import campaign_pause, engine_lease
from apps.core.errors import LeaseLost
from apps.core.leases import Owner, process_start, this_process
from apps.kernels.models import Verdict
from apps.stream.selectors import events_after


def lease() -> Job | None:
    return job_lease(hardware=HARDWARE, backends=["numba"])


def dead_owner() -> dict[str, Any]:
    """A process of this host that has ended."""
    me = this_process()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        start = process_start(child.pid)
    return {"owner_host": me.host, "owner_boot": me.boot, "owner_pid": child.pid, "owner_start": start}


def test_promotion_before_probe_before_round_and_first_come_first_served(world: World) -> None:
    kernel = world.kernel(medium())
    jobs = {name: world.job(kernel, purpose=name) for name in ("round", "probe", "promotion")}
    second = world.job(kernel, purpose="round")
    assert jobs_ahead(second) == 3
    taken = [lease().pk for _ in range(4)]
    assert taken == [jobs["promotion"].pk, jobs["probe"].pk, jobs["round"].pk, second.pk]
    assert lease() is None


def test_other_hardware_and_paused_campaigns_are_left_alone(world: World) -> None:
    world.job(world.kernel(medium()))
    assert job_lease(hardware="nvidia-h200", backends=["numba"]) is None
    assert job_lease(hardware=HARDWARE, backends=["triton"]) is None
    behind = world.new_campaign().job(world.kernel(medium("4")))
    assert jobs_ahead(behind) == 1
    campaign_pause(campaign=world.campaign, person=world.ada)
    assert jobs_ahead(behind) == 0
    campaign_pause(campaign=behind.campaign, person=world.ada)
    assert lease() is None


def test_an_old_token_writes_nothing(world: World) -> None:
    world.job(world.kernel(medium()))
    first = lease()
    document, samples = verdict_document(first)
    Job.objects.filter(pk=first.pk).update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    assert [job.pk for job in jobs_reap()] == [first.pk]
    second = lease()
    assert (second.pk, second.attempt) == (first.pk, 2)
    assert second.fence > first.fence
    for write in (
        lambda: job_heartbeat(job_id=first.pk, fence=first.fence),
        lambda: job_progress(job_id=first.pk, fence=first.fence, stage="smoke", done=1, total=2),
        lambda: job_fail(job_id=first.pk, fence=first.fence, error="x"),
        lambda: job_complete(job_id=first.pk, fence=first.fence, document=document, samples=samples),
    ):
        with pytest.raises(LeaseLost):
            write()
    assert not Verdict.objects.exists()
    verdict = job_complete(job_id=second.pk, fence=second.fence, document=document, samples=samples)
    with pytest.raises(LeaseLost):
        job_complete(job_id=second.pk, fence=second.fence, document=document, samples=samples)
    assert Verdict.objects.get() == verdict
    assert Job.objects.get().verdict == verdict


def test_a_dead_owner_loses_the_job_at_once(world: World) -> None:
    world.job(world.kernel(medium()))
    job = lease()
    assert jobs_reap() == []
    Job.objects.filter(pk=job.pk).update(**dead_owner())
    assert [row.state for row in jobs_reap()] == ["queued"]
    assert Job.objects.get().error == "The worker died in attempt 1."


def test_third_broken_attempt_is_errored(world: World) -> None:
    world.job(world.kernel(medium()))
    for attempt in (1, 2, 3):
        job = lease()
        assert job.attempt == attempt
        job_fail(job_id=job.pk, fence=job.fence, error=f"broken {attempt}")
    assert lease() is None
    assert (Job.objects.get().state, Job.objects.get().error) == ("errored", "broken 3")


def test_cancelled_job_is_noticed_at_the_next_heartbeat(world: World) -> None:
    world.job(world.kernel(medium()))
    job = lease()
    job_cancel(job=job, reason="stopped")
    with pytest.raises(LeaseLost, match="cancelled"):
        job_heartbeat(job_id=job.pk, fence=job.fence)


def test_progress_keeps_a_clock_per_stage(world: World) -> None:
    world.job(world.kernel(light()))
    job = lease()
    for stage in ("admit", "static", "static", "smoke"):
        job_progress(job_id=job.pk, fence=job.fence, stage=stage, done=0, total=1)
    stages = Job.objects.get().stages
    assert [entry["stage"] for entry in stages] == ["admit", "static", "smoke"]
    assert [entry["ended_at"] is None for entry in stages] == [False, False, True]
    assert stages[0]["ended_at"] == stages[1]["started_at"]


def test_campaign_of_a_dead_engine_is_taken_over_and_of_a_live_one_is_not(world: World) -> None:
    campaign = world.campaign
    fence = campaign.fence
    type(campaign).objects.filter(pk=campaign.pk).update(owner_pid=1, owner_start=process_start(1))
    assert engine_lease(campaign=campaign) is None
    type(campaign).objects.filter(pk=campaign.pk).update(**dead_owner())
    assert engine_lease(campaign=campaign) == fence + 1


def test_a_reused_process_id_is_another_process() -> None:
    me = this_process()
    assert me.alive() is True
    assert Owner(me.host, me.boot, me.pid, "1").alive() is False
    assert Owner(me.host, "another boot", me.pid, me.start).alive() is False
    assert Owner("elsewhere", me.boot, me.pid, me.start).alive() is None


def test_workers_come_and_go_with_events(world: World) -> None:
    for _ in range(3):
        worker_beat(name="evalworker:x", kind="evalworker", hardware=HARDWARE, backends=["numba"], isolation=3)
    assert [(status.worker.name, status.up) for status in workers()] == [("evalworker:x", True)]
    worker_gone(name="evalworker:x", reason="signal 9")
    worker_gone(name="evalworker:x", reason="signal 9")
    assert [status.up for status in workers()] == [False]
    kinds = [event.kind for event in events_after(world.team.stream, 0) if event.kind.startswith("worker")]
    assert kinds == ["worker.up", "worker.down"]
