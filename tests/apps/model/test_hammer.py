"""Two processes on one database: events without gaps or loss, each job taken once, nothing locked out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from gate_world import HARDWARE, World, make_world, medium

from apps.campaigns.models import Job
from apps.stream.models import Event, Stream

ROOT = Path(__file__).resolve().parents[3]
EACH = 60
SCRIPT = """
import json, os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "kernelopt_site.settings.base"
import django
django.setup()
from django.db import connection
from apps.campaigns.jobs.services import job_fail, job_heartbeat, job_lease
from apps.campaigns.models import Round
from apps.stream.services import progress_put, recording
campaign, team, hardware, mark, each = json.loads(sys.argv[1])
streams = (f"campaign:{campaign}", f"team:{team}")
print("ready", flush=True)
sys.stdin.readline()
errors, taken = [], []
for number in range(each):
    try:
        with recording(*streams) as log:
            log.append(streams[0], "round.started", {"mark": mark, "n": number})
            Round.objects.filter(campaign=campaign, number=0).update(cause=f"{mark} {number}")
            if number % 3 == 0:
                log.append(streams[0], "round.proposed", {"mark": mark, "n": number})
            if number % 2 == 0:
                log.append(streams[1], "worker.up", {"mark": mark, "n": number})
        progress_put(stream=streams[0], kind="progress", data={"mark": mark})
        job = job_lease(hardware=hardware, backends=["numba"])
        if job is not None:
            taken.append([str(job.pk), job.fence])
            job_heartbeat(job_id=job.pk, fence=job.fence)
            job_fail(job_id=job.pk, fence=job.fence, error=mark, retry=False)
    except Exception as error:
        errors.append(repr(error))
print(json.dumps({"errors": errors, "taken": taken}))
"""


def same_database() -> dict[str, str]:
    """The variable that points another process at this test's database."""
    name = str(connection.settings_dict["NAME"])
    if connection.vendor == "sqlite":
        return {"KERNELOPT_SQLITE": name}
    url = os.environ["KERNELOPT_DATABASE_URL"]
    return {"KERNELOPT_DATABASE_URL": f"{url.rpartition('/')[0]}/{name}"}


@pytest.fixture
def committed_world(transactional_db: None) -> World:
    """A world whose rows other processes see."""
    return make_world()


def test_two_processes_write_events_and_take_jobs(committed_world: World) -> None:
    world = committed_world
    kernel = world.kernel(medium())
    jobs = [world.job(kernel) for _ in range(40)]
    before = {name: Stream.objects.get(pk=name).last_seq for name in (world.campaign.stream, world.team.stream)}
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, **same_database()}
    children = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT, json.dumps([world.campaign.pk, world.team.pk, HARDWARE, mark, EACH])],
            cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for mark in ("one", "two")
    ]
    for child in children:
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    answers: list[dict[str, Any]] = [json.loads(child.communicate(timeout=120)[0]) for child in children]
    assert [answer["errors"] for answer in answers] == [[], []]
    for name, more in ((world.campaign.stream, EACH + EACH // 3), (world.team.stream, EACH // 2)):
        numbers = list(Event.objects.filter(stream_id=name).order_by("seq").values_list("seq", flat=True))
        assert numbers == list(range(1, len(numbers) + 1))
        assert len(numbers) == before[name] + 2 * more == Stream.objects.get(pk=name).last_seq
    taken = [pk for answer in answers for pk, _ in answer["taken"]]
    assert sorted(taken) == sorted(str(job.pk) for job in jobs)
    assert all(answer["taken"] for answer in answers)
    assert set(Job.objects.values_list("state", flat=True)) == {"errored"}
    for mark in ("one", "two"):
        told = [e.data["n"] for e in Event.objects.filter(stream_id=world.campaign.stream, kind="round.started")
                if e.data.get("mark") == mark]
        assert told == sorted(told)
