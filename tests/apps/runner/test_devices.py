"""A GPU beside the CPU: whose worker takes what, and what stays a dry run."""

from __future__ import annotations

import json
import uuid
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from apps.bridge import api
from apps.bridge.api import DeviceFacts
from apps.bridge.runner import site
from apps.bridge.runner.evaluator import clean_environment
from apps.bridge.runner.idle import job_waits
from apps.bridge.runner.measure import outage
from apps.bridge.runner.site import child_specs
from apps.campaigns.jobs.devices import is_dry
from apps.campaigns.jobs.services import job_complete, job_enqueue, job_lease
from apps.campaigns.jobs.workers import worker_beat
from apps.campaigns.models import Job, Worker
from apps.campaigns.services import campaign_create
from apps.core.errors import Invalid
from apps.kernels.models import Operator
from apps.kernels.services import baseline_kernel
from apps.teams.models import Team, User
from harness.domain.codec import schema
from harness.hardware import exclusive
from tests.apps.runner.conftest import PROJECT

pytestmark = pytest.mark.django_db
GPU = "nvidia-h200"
CPU = "cpu-test-1t"


@pytest.fixture
def person(db: None) -> User:
    from tests.crash.campaigns import make_person

    return make_person()


def gpu_worker() -> Worker:
    return worker_beat(name=f"evalworker:{GPU}", kind="evalworker", hardware=GPU, backends=["triton"])


def triton_job() -> Job:
    key = uuid.uuid4()
    source = api.baseline_source("rms_norm", "triton")
    kernel = baseline_kernel(operator=Operator.objects.get(name="rms_norm"), backend="triton")
    request = api.verification_request(
        job=str(key), goal=api.goal_default("rms_norm", "triton", GPU, "llm"), operator_version="1", candidate=source,
        against={}, purpose="probe")
    return job_enqueue(purpose="probe", request=request, team=Team.objects.get(), kernel=kernel, job_id=key)


def test_without_a_gpu_worker_the_cpus_worker_takes_triton_as_a_dry_run(person: User) -> None:
    job = triton_job()
    assert is_dry(GPU, "triton") and not is_dry(CPU, "numba")
    assert job_lease(hardware=CPU, backends=["numba", "triton"]) == job


def test_with_one_the_job_waits_for_the_gpu_even_while_its_worker_is_down(person: User) -> None:
    job, worker = triton_job(), gpu_worker()
    Worker.objects.filter(pk=worker.pk).update(lease_expires_at=None)
    assert job_lease(hardware=CPU, backends=["numba", "triton"]) is None
    Job.objects.update(created_at=timezone.now() - timedelta(minutes=2))
    job.refresh_from_db()
    assert GPU in (outage(job) or "")
    assert job_lease(hardware=GPU, backends=["triton"]) == job


def test_a_device_that_is_gone_for_a_day_is_not_waited_for(person: User) -> None:
    job, worker = triton_job(), gpu_worker()
    Worker.objects.filter(pk=worker.pk).update(beat_at=timezone.now() - timedelta(hours=25))
    assert job_lease(hardware=CPU, backends=["numba", "triton"]) == job


@pytest.mark.parametrize("served", [True, False])
def test_a_campaign_on_a_device_that_is_here_is_no_dry_run(person: User, served: bool) -> None:
    if served:
        gpu_worker()
    goal = api.goal_default("rms_norm", "triton", GPU, "llm")
    campaign = campaign_create(team=Team.objects.get(), person=person, goal=goal)
    assert campaign.dry_run is not served


def verdict_on(job: Job, hardware: str) -> dict[str, object]:
    document = json.loads(json.dumps(schema("verdict")["examples"][0]))
    return document | {"kernel": job.kernel_id, "operator": job.request["operator"], "backend": "triton",
                       "hardware": hardware, "samples": None}


def test_figures_without_the_device_are_not_recorded_as_its_figures(person: User) -> None:
    triton_job()
    job = job_lease(hardware=GPU, backends=["triton"])
    assert job is not None
    with pytest.raises(Invalid, match="interpreter"):
        job_complete(job_id=job.pk, fence=job.fence, document=verdict_on(job, "interpreter"), samples=None)
    dry = verdict_on(job, "interpreter") | {"timing": None, "comparison": "none", "compared_with": None, "score": None}
    assert job_complete(job_id=job.pk, fence=job.fence, document=dry, samples=None).evidence == ""


def test_serve_starts_a_worker_per_device(monkeypatch: pytest.MonkeyPatch) -> None:
    names = lambda: [spec.name for spec in child_specs(host="127.0.0.1", port=1, manage=PROJECT / "manage.py")]  # noqa: E731
    monkeypatch.setattr(api, "devices_here", lambda: (DeviceFacts(CPU, ("numba", "triton")),))
    assert names() == ["web", "engine", "evalworker"]
    monkeypatch.setattr(api, "devices_here", lambda: (DeviceFacts(CPU, ("numba",)), DeviceFacts(GPU, ("triton",))))
    assert names() == ["web", "engine", "evalworker", f"evalworker:{GPU}"]


def test_a_gpu_with_cores_to_spare_has_two_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "devices_here", lambda: (DeviceFacts(CPU, ("numba",)), DeviceFacts(GPU, ("triton",))))
    monkeypatch.setattr(site, "allowed", lambda: tuple(range(16)))
    monkeypatch.setattr(site, "announce_cores", lambda: frozenset({0}))
    specs = {spec.name: spec for spec in child_specs(host="127.0.0.1", port=1, manage=PROJECT / "manage.py")}
    assert list(specs)[3:] == [f"evalworker:{GPU}", f"evalworker:{GPU}:2"]
    assert specs[f"evalworker:{GPU}:2"].command[-4:] == ("--hardware", GPU, "--lane", "2")
    assert specs["web"].cores == specs["evalworker"].cores == {0}
    assert specs[f"evalworker:{GPU}"].cores == set(range(16))  # they compile there; their clock is the device's
    assert [site.lanes_of(GPU, cores) for cores in (1, 4, 7, 8, 64)] == [1, 1, 1, 2, 2]
    assert site.lanes_of(CPU, 64) == 1


def test_evaluators_with_private_temporary_folders_share_the_devices_lock(tmp_path: Path,
                                                                          monkeypatch: pytest.MonkeyPatch) -> None:
    here = str(exclusive.lock_path(GPU))
    for room in ("one", "other"):
        for name, value in clean_environment(tmp_path / room).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr("tempfile.tempdir", None)
        assert str(exclusive.lock_path(GPU)) == here


def test_only_a_gpu_has_lanes() -> None:
    with pytest.raises(CommandError, match="one lane"):
        call_command("evalworker", lane=2)


def test_two_lanes_judge_two_jobs_of_one_device(person: User) -> None:
    jobs = {triton_job().pk, triton_job().pk}
    for lane in (1, 2):
        worker_beat(name=site.worker_name(GPU, lane), kind="evalworker", hardware=GPU, backends=["triton"])
    assert job_waits(GPU) and job_waits(CPU)
    taken = [job_lease(hardware=GPU, backends=["triton"]) for _ in range(3)]
    assert {job.pk for job in taken[:2] if job is not None} == jobs and taken[2] is None
    assert job_waits(GPU) and not job_waits(CPU)  # a self-test in the first lane makes way for the second one's job


def test_a_worker_for_a_device_that_is_not_here_says_which_are() -> None:
    with pytest.raises(CommandError, match=r"no nvidia-h900.*cpu-"):
        call_command("evalworker", hardware="nvidia-h900")


@pytest.mark.parametrize("port", [70000, -1])
def test_a_port_that_is_none_is_refused_in_a_sentence(port: int) -> None:
    with pytest.raises(site.CannotServe, match=f"Port {port} on 127.0.0.1 cannot be used: ports are numbers from 0"):
        site.check_port("127.0.0.1", port)


def test_a_cpu_goal_says_nothing_of_registers() -> None:
    for backend, hardware in (("numba", CPU), ("triton", GPU)):
        said = " ".join(api.goal_check(api.goal_default("rms_norm", backend, hardware, "llm")).sentences)
        assert ("255 registers per thread" in said, "bytes spilled" in said) == (backend == "triton",) * 2
        assert "Hard limits: scratch memory at most" in said
