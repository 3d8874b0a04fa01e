"""The goal form and the controls of a campaign."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from gate_world import HARDWARE, World

from apps.bridge import api
from apps.campaigns import goal_form
from apps.campaigns.jobs.workers import worker_beat
from apps.campaigns.models import Campaign
from apps.campaigns.templatetags.goal import field_id
from apps.kernels.services import hardware_register
from apps.reviews.models import ReviewRequest
from apps.reviews.services import review_withdraw


def posted(**changes: str) -> dict[str, Any]:
    """The form as it opens, with changes."""
    form = goal_form.start_values(api.operator("rms_norm"), "numba", HARDWARE, "llm")
    return {**form.values, **{name.replace("__", "."): value for name, value in changes.items()}}


def test_the_form_as_it_opens_is_valid_and_starts_a_campaign(world: World, sign_in: Callable[..., Client]) -> None:
    answer = sign_in(world.ada).post("/campaigns/new/", posted(name="first of its kind"))
    assert answer.status_code == 303
    campaign = Campaign.objects.get(name="first of its kind")
    assert answer["Location"] == f"/campaigns/{campaign.pk}/"
    assert (campaign.state, campaign.grant, campaign.started_by) == ("running", "medium", world.ada)
    assert campaign.goal == api.goal_default("rms_norm", "numba", HARDWARE, "llm")


def test_a_draft_waits(world: World, sign_in: Callable[..., Client]) -> None:
    sign_in(world.ada).post("/campaigns/new/", posted(name="later", draft="1"))
    campaign = Campaign.objects.get(name="later")
    assert campaign.state == "draft"
    assert b"Start" in sign_in(world.ada).get(f"/campaigns/{campaign.pk}/").content


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"weights__latency": "0.9"}, "weights.latency", "sum to"),
        ({"weights__latency": "fast"}, "weights.latency", "is not a number"),
        ({"budget__rounds": "0"}, "budget.rounds", "at least 1"),
        ({"budget__rounds": "", "budget__evaluations": "", "budget__seconds": ""}, "budget.rounds", "no limit"),
        ({"budget__rounds": "2.5"}, "budget.rounds", "whole number"),
        ({"limits__tolerance__relative": "0.001"}, "limits.tolerance.relative", ""),
        ({"stop__plateau_gain": "0.001"}, "stop.plateau_gain", "0.02"),
        ({"adjustable__BLOCK__low": "99999"}, "adjustable.BLOCK.low", "empty"),
        ({"grant": "none"}, "grant", ""),
    ],
)
def test_every_error_names_its_field(
    world: World, sign_in: Callable[..., Client], changes: dict[str, str], field: str, words: str
) -> None:
    before = Campaign.objects.count()
    answer = sign_in(world.ada).post("/campaigns/new/", posted(**changes))
    assert answer.status_code == 422
    form = answer.context["form"]
    assert field in form.errors or any(key.startswith(field.rsplit(".", 1)[0]) for key in form.errors), form.errors
    assert words in " ".join(form.errors.values())
    assert Campaign.objects.count() == before


def test_the_preview_says_the_goal_in_plain_words(world: World, sign_in: Callable[..., Client]) -> None:
    client = sign_in(world.ada)
    text = client.post("/campaigns/new/preview/", posted(grant="heavy")).content.decode()
    assert "<html" not in text and 'id="preview"' in text
    assert "Two reviewers must approve" in text and "[objective.weights]" in text
    text = client.post("/campaigns/new/preview/", posted(weights__latency="1.0")).content.decode()
    assert "1 to fix" in text and 'class="oops"' in text and 'aria-disabled="true"' in text


def test_a_viewer_reads_why_and_cannot_start(world: World, sign_in: Callable[..., Client]) -> None:
    client = sign_in(world.vic)
    assert "needs the role" in client.get("/campaigns/new/").content.decode()
    assert client.post("/campaigns/new/", posted(name="not mine")).status_code == 403
    assert not Campaign.objects.filter(name="not mine").exists()


def test_controls_do_what_they_say_and_refusals_are_sentences(world: World, sign_in: Callable[..., Client]) -> None:
    client, campaign = sign_in(world.ada), world.campaign

    def act(action: str, **data: str) -> str:
        answer = client.post(f"/campaigns/{campaign.pk}/do/{action}/", data, follow=True)
        campaign.refresh_from_db()
        return answer.content.decode()

    assert "Paused." in act("pause", reason="lunch")
    assert campaign.state == "paused"
    assert "goes on" in act("resume")
    assert campaign.state == "running"
    assert "not open on this plateau" in act("choose", choice="finish")
    assert "Stopped." in act("stop", reason="enough")
    assert campaign.state == "stopped"
    assert "banner bad" in act("resume")
    assert client.post(f"/campaigns/{campaign.pk}/do/explode/").status_code == 404
    assert client.get(f"/campaigns/{campaign.pk}/do/stop/").status_code == 405


def test_a_viewer_reads_why_the_controls_are_off(world: World, sign_in: Callable[..., Client]) -> None:
    text = sign_in(world.vic).get(f"/campaigns/{world.campaign.pk}/").content.decode()
    assert "needs the role" in text and "/do/pause/" not in text
    sign_in(world.vic).post(f"/campaigns/{world.campaign.pk}/do/stop/")
    world.campaign.refresh_from_db()
    assert world.campaign.state == "running"


def test_the_log_as_a_file_runs_no_formula(world: World, sign_in: Callable[..., Client]) -> None:
    row = world.campaign.rounds.get(number=1)
    row.entry = {**row.entry, "change_summary": "=cmd|' /C calc'!A0"}
    row.save()
    text = sign_in(world.vic).get(f"/campaigns/{world.campaign.pk}/log.csv").content.decode()
    assert "'=cmd" in text and ",=cmd" not in text
    assert text.splitlines()[0].startswith("round,direction,hypothesis,expected_gain")


def test_fork_starts_from_the_same_goal(world: World, sign_in: Callable[..., Client]) -> None:
    client = sign_in(world.ada)
    text = client.get(f"/campaigns/new/?from={world.campaign.pk}").content.decode()
    assert f"Fork of C-{world.campaign.pk}" in text
    answer = client.post("/campaigns/new/", {**posted(name="forked", grant="heavy"), "from": str(world.campaign.pk)})
    assert answer.status_code == 303
    fork = Campaign.objects.get(name="forked")
    assert fork.fork_of_id == world.campaign.pk and fork.start_kernel_id == world.campaign.incumbent_id


def test_a_person_submits_the_incumbent_once(world: World, sign_in: Callable[..., Client]) -> None:
    open_now = ReviewRequest.objects.get(campaign=world.campaign)
    client = sign_in(world.ada)
    assert "/do/submit/" not in client.get(f"/campaigns/{world.campaign.pk}/").content.decode()
    review_withdraw(request=open_now, person=world.ada, reason="once more")
    assert "/do/submit/" in client.get(f"/campaigns/{world.campaign.pk}/").content.decode()
    client.post(f"/campaigns/{world.campaign.pk}/do/submit/")
    again = ReviewRequest.objects.get(campaign=world.campaign, state="open")
    assert again.opened_by == world.ada and again.kernel_id == world.campaign.incumbent_id


@pytest.mark.parametrize("backend", ["numba", "triton"])
def test_what_is_wrong_leads_to_its_field(world: World, sign_in: Callable[..., Client], backend: str) -> None:
    page = sign_in(world.ada).get(f"/campaigns/new/?operator=matmul_bias_gelu&backend={backend}").content.decode()
    inputs = re.findall(r'<input type="text"[^>]*\bid="(f-[^"]+)" name="([^"]+)"', page)
    assert {"limits.tolerance.reason", "budget.rounds", "weights.latency"} <= {name for _, name in inputs}
    assert any(name.startswith("adjustable.") for _, name in inputs)
    assert [(identity, name) for identity, name in inputs if identity != field_id(name)] == []


def test_triton_starts_on_the_gpu_that_is_here_else_on_the_command_lines(
    world: World, sign_in: Callable[..., Client]
) -> None:
    client, chosen = sign_in(world.ada), re.compile(r'<select id="f-hardware".*?<option[^>]*? selected>([^<]+)', re.S)
    for name in ("nvidia-a100", "nvidia-h100", "nvidia-h200"):
        hardware_register(name=name, backends=["triton"])

    def default() -> str:
        found = chosen.search(client.get("/campaigns/new/?backend=triton").content.decode())
        assert found is not None
        return found[1]

    assert default() == "nvidia-h200"
    switched = client.post("/campaigns/new/", {**posted(backend="triton"), "refresh": "1"}).content.decode()
    assert (found := chosen.search(switched)) is not None and found[1] == "nvidia-h200"
    worker_beat(name="evalworker:nvidia-h100", kind="evalworker", hardware="nvidia-h100", backends=["triton"])
    assert default() == "nvidia-h100"
