"""What a dry run leaves for a GPU host: the requests of the kernels that passed here, as the command reads them."""

from __future__ import annotations

import io
import json
import uuid
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps.bridge import api
from apps.campaigns.jobs.services import job_complete, job_enqueue, job_lease
from apps.campaigns.models import Campaign, Job
from apps.campaigns.services import campaign_create, campaign_start
from apps.teams.models import Team, User
from harness.backends.triton.export import export_request
from harness.domain.codec import from_document, schema
from harness.domain.request import EvaluationRequest
from tests.crash.campaigns import make_person

pytestmark = pytest.mark.django_db
GPU = "nvidia-h200"


@pytest.fixture
def person(db: None) -> User:
    return make_person()


@pytest.fixture
def campaign(person: User) -> Campaign:
    goal = api.goal_default("rms_norm", "triton", GPU, "llm")
    made = campaign_create(team=Team.objects.get(), person=person, goal=goal)
    campaign_start(campaign=made, person=person)
    made.refresh_from_db()
    return made


def judged(campaign: Campaign, **verdict: Any) -> Job:
    """A round's job of the baseline, answered without a device."""
    key, kernel = uuid.uuid4(), campaign.start_kernel
    assert kernel is not None
    request = api.verification_request(
        job=str(key), goal=campaign.goal, operator_version="1", candidate=bytes(kernel.source), against={},
        purpose="round")
    job_enqueue(purpose="round", request=request, team=campaign.team, kernel=kernel, campaign=campaign, job_id=key)
    job = job_lease(hardware="cpu-test-1t", backends=["numba", "triton"])
    assert job is not None and job.pk == key
    document = json.loads(json.dumps(schema("verdict")["examples"][0]))
    document |= {"kernel": job.kernel_id, "operator": request["operator"], "backend": "triton", "samples": None,
                 "hardware": "interpreter", "timing": None, "comparison": "none", "compared_with": None, "score": None}
    job_complete(job_id=key, fence=job.fence, document=document | verdict, samples=None)
    return job


def unpacked(client: Client, campaign: Campaign) -> dict[str, bytes]:
    answer = client.get(f"/campaigns/{campaign.pk}/requests.zip")
    assert answer.status_code == 200 and answer["Content-Type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_archive_holds_what_the_command_line_writes(
    campaign: Campaign, person: User, sign_in: Callable[..., Client], tmp_path: Path
) -> None:
    judged(campaign)
    job = judged(campaign)  # of one kernel judged twice the later request stands
    client = sign_in(person)
    files = unpacked(client, campaign)
    request = from_document(job.request, EvaluationRequest)
    (written,) = export_request(request, (), tmp_path)
    assert files == {f"campaign-{campaign.pk}/requests/{written.name}": written.read_bytes()}
    again, before = (client.get(f"/campaigns/{campaign.pk}/requests.zip").content for _ in range(2))
    assert again == before


def test_the_archive_is_addressed_to_the_campaigns_gpu(
    campaign: Campaign, person: User, sign_in: Callable[..., Client]
) -> None:
    judged(campaign)
    (data,) = unpacked(sign_in(person), campaign).values()
    request = from_document(json.loads(data), EvaluationRequest)
    assert (request.hardware, request.goal.hardware, str(request.purpose)) == (GPU, GPU, "round")
    assert campaign.start_kernel is not None and request.candidate.source == campaign.start_kernel.text


def test_the_page_offers_it_once_a_kernel_passed(
    campaign: Campaign, person: User, sign_in: Callable[..., Client]
) -> None:
    client, address = sign_in(person), f"/campaigns/{campaign.pk}/requests.zip"
    empty = client.get(f"/campaigns/{campaign.pk}/").content.decode()
    assert address not in empty and "none has passed yet" in empty
    assert client.get(address).status_code == 404
    judged(campaign)
    page = client.get(f"/campaigns/{campaign.pk}/").content.decode()
    assert page.count(address) == 2 and "do not come back into this site" in page
    Campaign.objects.filter(pk=campaign.pk).update(state="stopped")
    assert client.get(f"/campaigns/{campaign.pk}/").content.decode().count(address) == 2


def test_what_was_refused_is_not_left_for_a_gpu(
    campaign: Campaign, person: User, sign_in: Callable[..., Client]
) -> None:
    judged(campaign, outcome="incorrect_numeric", blame="candidate")
    assert sign_in(person).get(f"/campaigns/{campaign.pk}/requests.zip").status_code == 404


def test_other_teams_do_not_see_it(campaign: Campaign, sign_in: Callable[..., Client]) -> None:
    judged(campaign)
    stranger = User.objects.create_user("stranger", password="a long password")
    assert sign_in(stranger).get(f"/campaigns/{campaign.pk}/requests.zip").status_code == 404
