"""A kernel judged on a GPU goes the same way as one on a CPU; one judged by the interpreter stays a dry run."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from gate_world import World, verdict_document

from apps.bridge import api
from apps.campaigns.jobs.selectors import devices_not_ready, environment_class_now
from apps.campaigns.jobs.services import job_complete, job_lease
from apps.campaigns.jobs.workers import selftest_record, worker_beat
from apps.campaigns.models import Job
from apps.core.errors import Invalid
from apps.kernels.models import Champion, Kernel, Verdict
from apps.kernels.services import contribution_add, kernel_store, origin_add
from apps.leaderboards.selectors import board
from apps.reviews.services import review_open
from apps.teams.services import token_create

GPU = "nvidia-h200"
CLASS = "nvidia-h200/driver-580/triton-3.6/eval-test"


def baseline() -> bytes:
    return api.baseline_source("rms_norm", "triton")


def changed() -> bytes:
    """The baseline with one more statement in its kernel."""
    marker = b"    lanes = tl.arange(0, BLOCK)\n"
    assert marker in baseline()
    return baseline().replace(marker, marker + b"    spare = cols + 1\n")


class GpuWorld(World):
    """The world with a campaign on a GPU whose worker is up."""

    def kernel(self, source: bytes) -> Kernel:
        kernel = kernel_store(source=source, operator=self.campaign.slot.operator, backend="triton")
        origin_add(team=self.team, kernel=kernel, source=f"campaign:{self.campaign.pk}")
        contribution_add(team=self.team, kernel=kernel, user=self.campaign.started_by, kind="started")
        return kernel

    def job(self, kernel: Kernel, *, purpose: str = "round", against: dict[str, bytes] | None = None) -> Job:
        return super().job(kernel, purpose=purpose, against={"incumbent": baseline()} if against is None else against)

    def answer(self, job: Job, *, hardware: str = GPU, **facts: Any) -> Verdict:
        leased = job_lease(hardware=GPU, backends=["triton"])
        assert leased is not None and leased.pk == job.pk
        document, samples = verdict_document(leased, **facts)
        document["environment"] |= {"class": CLASS, "gpu": "NVIDIA H200", "driver": "580.95"}
        document["hardware"], document["target"] = hardware, GPU
        if hardware != GPU:
            document |= {"timing": None, "comparison": "none", "compared_with": None, "score": None, "samples": None}
            samples = None
        return job_complete(job_id=leased.pk, fence=leased.fence, document=document, samples=samples)


@pytest.fixture
def gpu(world: World) -> GpuWorld:
    """A running campaign on the GPU."""
    worker_beat(name=f"evalworker:{GPU}", kind="evalworker", hardware=GPU, backends=["triton"], isolation=3,
                proved=["netns"])
    made = world.new_campaign(backend="triton", hardware=GPU)
    assert not made.campaign.dry_run
    selftest_record(evaluator_version=api.evaluator_version(), environment_class=CLASS, isolation=3, backend="triton",
                    quick=True, passed=True, report={})
    return GpuWorld(**{name: getattr(made, name) for name in made.__dataclass_fields__})


def test_a_gpu_kernel_becomes_champion_and_is_ranked_and_handed_out(gpu: GpuWorld) -> None:
    request = gpu.request(changed())
    assert environment_class_now(GPU, "triton") == CLASS and devices_not_ready() == []
    gpu.decide(request, gpu.ben)
    assert gpu.verify(request).state == "promoted"
    assert Champion.objects.get(slot__hardware__name=GPU).kernel_id == request.kernel_id
    found = board(gpu.ada, operator="rms_norm", backend="triton", hardware=GPU, workload="llm")
    assert found.environment_class == CLASS
    assert [(row.rank, row.approval, row.noise is not None) for row in found.rows if row.rank] == [
        (1, "champion", True)]
    _, secret = token_create(team=gpu.team, user=gpu.robot, name="serving", by=gpu.maintainer)
    answer = Client().get(f"/api/v1/champions/rms_norm?hardware={GPU}", headers={"authorization": f"Bearer {secret}"})
    assert answer.json()["environment_class"] == CLASS and answer.json()["hardware"] == GPU


def test_an_interpreters_verdict_opens_no_review_and_ranks_nowhere(gpu: GpuWorld) -> None:
    job = gpu.job(gpu.kernel(changed()))
    verdict = gpu.answer(job, hardware="interpreter")
    assert verdict.evidence == "" and verdict.hardware == "interpreter"
    with pytest.raises(Invalid, match="only passed and timed"):
        review_open(campaign=gpu.campaign, kernel=verdict.kernel, verdict=verdict, person=gpu.ada)
    found = board(gpu.ada, operator="rms_norm", backend="triton", hardware=GPU, workload="llm")
    assert all(row.rank is None for row in found.rows)


def test_the_page_of_a_gpu_verdict_names_gpu_driver_and_telemetry(gpu: GpuWorld) -> None:
    verdict = gpu.verdict(changed())
    document = {**verdict.document, "environment": {**verdict.document["environment"], "clocks": {
        "gpu": {"sm_mhz": [1965, 1980], "celsius": [40, 44], "event_reasons": "0x4", "other_processes": 0},
        "slopes": {"2048x4096": {"candidate": {"events_us": 67.9, "judge_us": 65.0, "launcher_us": 65.5}}}}}}
    from apps.kernels.screens.verdict.page import verdict_context

    verdict.document = document
    context = verdict_context(verdict)
    assert dict(context["facts"])["GPU"] == "NVIDIA H200" and dict(context["facts"])["Driver"] == "580.95"
    assert [fact.text for fact in context["telemetry"]][:2] == ["1965–1980 MHz", "40–44 °C"]
    assert context["slopes"][0].judge_us == 65.0 and context["latency"].budget == 12.0
