"""Regions that refresh themselves: the stepper, the plot's data, the feed's count, the banner and the counts on top."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html import unescape

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from gate_world import World, heavy, medium

from apps.campaigns.choices import JobState, RoundState
from apps.campaigns.jobs.selectors import devices_not_ready
from apps.campaigns.jobs.workers import worker_beat
from apps.campaigns.models import Campaign, Job, Round
from apps.campaigns.screens.detail import rounds_without_gain
from apps.campaigns.screens.rounds import log_rows, rounds_with_verdicts
from apps.campaigns.screens.stepper import stepper_of
from apps.core import figures, words
from apps.leaderboards.selectors import board
from apps.reviews.models import ReviewRequest
from apps.reviews.selectors import inbox_for, promotions_blocked, spot_checks_for
from apps.reviews.services import review_open
from apps.reviews.waiting import waiting_count
from apps.stream.sentences import sentence


def part(client: Client, world: World, name: str) -> str:
    """One region of the campaign's page."""
    return str(client.get(f"/campaigns/{world.campaign.pk}/?part={name}").content.decode())


def test_a_refreshed_region_carries_its_figure_without_a_script(
    world: World, sign_in: Callable[..., Client]
) -> None:
    text = part(sign_in(world.ada), world, "ideas")
    assert "<script" not in text
    found = re.search(r'data-figure="([^"]*)"', text)
    assert found and json.loads(unescape(found[1]))["data"]


def test_the_feed_says_how_many_of_how_many(world: World, sign_in: Callable[..., Client]) -> None:
    text = sign_in(world.ada).get(f"/campaigns/{world.campaign.pk}/").content.decode()
    listed = len(re.findall(r'<li data-seq="', text))
    assert listed and re.search(rf"<span data-feed-count>{listed}</span> of <span data-feed-head>\d+</span>", text)


def newest(world: World) -> Round:
    """The last round of the world's campaign."""
    row = Round.objects.filter(campaign=world.campaign).order_by("-number").first()
    assert row is not None
    return row


def test_lists_show_the_name_that_a_person_gave(world: World, sign_in: Callable[..., Client]) -> None:
    client = sign_in(world.ada)
    Campaign.objects.filter(pk=world.campaign.pk).update(name="For the <b> team")
    assert "For the &lt;b&gt; team" in client.get("/campaigns/").content.decode()
    slot = world.campaign.slot
    plain = f"{slot.operator} on {slot.hardware} with {world.campaign.agent_kind}"
    Campaign.objects.filter(pk=world.campaign.pk).update(name=plain)
    assert plain not in client.get("/campaigns/").content.decode()


def test_a_round_that_ended_takes_no_progress_and_shows_no_stage_as_running(
    world: World, sign_in: Callable[..., Client]
) -> None:
    row = newest(world)
    assert row.state == RoundState.CONCLUDED
    text = part(sign_in(world.ada), world, "top")
    assert f'data-stepper="{row.number}"' in text and "data-open" not in text and 'class="on"' not in text


def running(world: World, stage: str) -> tuple[Round, Job]:
    """A round in evaluation with its job at ``stage``, as rows; not saved."""
    row = Round(pk=999, campaign=world.campaign, number=9, state=RoundState.EVALUATING, state_since=timezone.now())
    job = Job(campaign=world.campaign, round_id=999, state=JobState.LEASED, progress={"stage": stage}, stages=[])
    return row, job


def test_nobody_thinks_in_round_0_it_is_measured_from_its_start(world: World) -> None:
    row = Round(pk=999, campaign=world.campaign, number=0, state=RoundState.THINKING, state_since=timezone.now())
    stepper = stepper_of(row, None)
    assert stepper is not None and stepper.steps[0].name == "admit" and stepper.state == RoundState.EVALUATING
    assert log_rows([row])[0].state == RoundState.EVALUATING
    row.number = 1
    stepper = stepper_of(row, None)
    assert stepper is not None and (stepper.steps[0].name, stepper.steps[0].state) == ("agent thinks", "on")
    assert log_rows([row])[0].state == RoundState.THINKING


def test_an_agent_from_outside_is_awaited_and_not_said_to_think(world: World) -> None:
    world.campaign.agent_kind = "mcp"
    row = Round(pk=999, campaign=world.campaign, number=1, state=RoundState.THINKING, state_since=timezone.now())
    stepper = stepper_of(row, None)
    assert stepper is not None and stepper.steps[0].name == "outside agent"
    assert stepper.steps[0].clock.startswith("awaited, ")
    assert words.mark("round", stepper.state).word == "outside agent awaited"
    row.state = RoundState.EVALUATING
    stepper = stepper_of(row, None)
    assert stepper is not None and (stepper.steps[0].clock, stepper.state) == ("", "evaluating")


def test_a_running_round_shows_the_stage_of_its_own_job(world: World) -> None:
    row, job = running(world, "correctness")
    stepper = stepper_of(row, job)
    assert stepper is not None and stepper.open
    assert [step.name for step in stepper.steps if step.state == "on"] == ["correctness"]
    job.round_id = 998  # of the round before, or of none: a verification
    other = stepper_of(row, job)
    assert other is not None and other.job is None and not [step for step in other.steps if step.state == "on"]


def test_a_round_that_waits_to_be_measured_anew_shows_nothing_of_the_attempt_before(world: World) -> None:
    row, job = running(world, "correctness")
    job.state, job.attempt = JobState.QUEUED, 2
    job.stages = [{"stage": "admit", "started_at": timezone.now().isoformat(), "ended_at": None}]
    row.verdict = world.campaign.incumbent_verdict
    stepper = stepper_of(row, job)
    assert stepper is not None and stepper.job is job
    assert {step.state for step in stepper.steps if step.name != "agent thinks"} == {""}
    assert {step.clock for step in stepper.steps if step.name != "agent thinks"} == {""}


@pytest.mark.parametrize("state", [RoundState.THINKING, RoundState.EVALUATING])
def test_after_the_campaign_ended_nothing_runs(world: World, state: RoundState) -> None:
    row, job = running(world, "plan")
    row.state = state
    stepper = stepper_of(row, job, ended=True)
    assert stepper is not None and not stepper.open and stepper.job is None
    assert "on" not in {step.state for step in stepper.steps}


def test_rounds_without_a_gain_read_well_past_the_number_that_asks(world: World) -> None:
    for ratio in (0.9, 0.91):
        world.round(medium(str(ratio)), ratios={"incumbent": ratio, "baseline": 1.2})
    found = rounds_without_gain(world.campaign, rounds_with_verdicts(world.campaign))
    assert found == {"count": 3, "warn": True, "says": "in a row; it asks you when no ranked idea is left"}
    world.campaign.state = "finished"
    found = rounds_without_gain(world.campaign, rounds_with_verdicts(world.campaign))
    assert found["says"] == "in a row when the campaign finished"


def test_a_level_not_proved_yet_is_not_called_level_0(world: World, sign_in: Callable[..., Client]) -> None:
    worker_beat(name="fresh", kind="evalworker", hardware="cpu-x", backends=["numba"])
    said = [text for text in devices_not_ready() if "fresh" in text]
    assert said == ["The isolation of fresh is not proved yet; the first evaluation proves it."]
    assert said[0] in promotions_blocked()
    client = sign_in(world.ada)
    text = client.get("/banners/").content.decode()
    assert "Promotions wait" in text and "every 20s" in text and "<html" not in text
    worker_beat(name="fresh", kind="evalworker", isolation=0)
    assert [text for text in devices_not_ready() if "fresh proved isolation level 0" in text]


def test_the_banner_goes_when_its_reason_goes(
    world: World, sign_in: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.core.screens.health.promotions_blocked", list)
    text = sign_in(world.ada).get("/banners/").content.decode()
    assert "Promotions wait" not in text and 'id="banners"' in text and "every" not in text


def test_somebody_signed_out_gets_no_banner(sign_in: Callable[..., Client], db: None) -> None:
    answer = sign_in(None).get("/banners/")
    assert (answer.status_code, answer.content) == (204, b"")


def test_the_count_on_top_is_the_inbox_in_two_queries(world: World) -> None:
    other = world.new_campaign()
    other.measure_baseline()
    other.round(heavy("8"), ratios={"incumbent": 1.2, "baseline": 1.2})
    verdict = other.campaign.incumbent_verdict
    assert verdict is not None
    review_open(campaign=other.campaign, kernel=verdict.kernel, verdict=verdict, person=world.ada)
    counts = set()
    for person in (world.ada, world.ben, world.cem, world.vic, world.admin, world.stranger):
        with CaptureQueriesContext(connection) as asked:
            count = waiting_count(person)
        assert len(asked) <= 2
        assert count == len(inbox_for(person)) + len(spot_checks_for(person)), person
        counts.add(count)
    assert len(counts) > 1


def test_a_board_leaves_the_documents_unread(world: World) -> None:
    slot = world.campaign.slot
    with CaptureQueriesContext(connection) as asked:
        shown = board(world.vic, operator=str(slot.operator), backend=slot.backend, hardware=str(slot.hardware),
                      workload=slot.workload)
    assert any(row.ratio for row in shown.rows) and any(row.noise is not None for row in shown.rows)
    read = [query["sql"] for query in asked.captured_queries]
    assert not [sql for sql in read if ' "kernels_verdict"."document"' in sql]  # in "(" it is asked for one fact


def test_lists_of_requests_say_what_changed_and_why_it_is_not_my_turn(
    world: World, request_row: ReviewRequest, sign_in: Callable[..., Client]
) -> None:
    made = Round.objects.get(campaign=world.campaign, kernel=request_row.kernel)
    assert made.change_summary
    text = unescape(sign_in(world.ada).get("/reviews/").content.decode())
    assert made.change_summary in text and "Why not you now" in text and "0 to 0 of 0" not in text


def test_home_without_an_active_campaign_says_where_they_went(world: World, sign_in: Callable[..., Client]) -> None:
    client = sign_in(world.ada)
    client.post(f"/campaigns/{world.campaign.pk}/do/stop/", {"reason": "enough"})
    text = client.get("/").content.decode()
    assert "No campaign is active" in text and "No campaign here yet" not in text


def test_decisions_read_as_sentences() -> None:
    said = sentence("review.decided", {"request": 3, "kind": "approve", "by": "Rosa"})
    assert said == "R-3 approved by Rosa."
    assert "changes requested" in sentence("review.decided", {"request": 3, "kind": "request_changes", "by": "Rosa"})


def test_named_facts_carry_their_unit() -> None:
    assert figures.measured("first_call_s", 1.7647715520005323) == f"first call 1.8{figures.NARROW}s"
    assert figures.measured("overhead_us", 114.540014) == f"overhead 114.5{figures.NARROW}µs"
    assert figures.measured("screening_ratio", 2.08044786) == "screening ratio 2.08"
    assert figures.measured("llvmlite", "0.50.0") == "llvmlite 0.50.0"
