"""State machines: every step of the tables, and no other; a lost race is said, not hidden."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from gate_world import World, medium

from apps.campaigns.choices import CAMPAIGN_MACHINE, JOB_MACHINE, ROUND_MACHINE
from apps.campaigns.models import Campaign, Job
from apps.campaigns.services import (
    campaign_create,
    campaign_fork,
    campaign_pause,
    campaign_resume,
    campaign_start,
    campaign_stop,
)
from apps.core.errors import ImpossibleTransition, Invalid, MovedOn
from apps.core.transitions import Machine, transition
from apps.kernels.choices import SLOT_MACHINE
from apps.reviews.choices import REQUEST_MACHINE, REQUEST_OPEN, SPOT_CHECK_MACHINE
from apps.reviews.services import review_open, review_withdraw

CONTRACT: dict[str, dict[str, str]] = {
    "campaign": {
        "draft": "running", "running": "paused plateau stopped failed", "paused": "running stopped failed",
        "plateau": "running finished stopped failed", "finished": "", "stopped": "", "failed": "",
    },
    "job": {
        "queued": "leased cancelled", "leased": "queued succeeded failed errored cancelled", "succeeded": "",
        "failed": "", "errored": "", "cancelled": "",
    },
    "review request": {
        "open": "changes_requested approved rejected vetoed withdrawn stale",
        "approved": "verifying changes_requested rejected vetoed withdrawn stale",
        "verifying": "promoted closed vetoed stale", "promoted": "", "closed": "", "rejected": "", "vetoed": "",
        "withdrawn": "", "stale": "", "changes_requested": "",
    },
    "spot check": {"asked": "answered lapsed", "answered": "", "lapsed": ""},
}


@pytest.mark.parametrize("machine", [CAMPAIGN_MACHINE, JOB_MACHINE, REQUEST_MACHINE, SPOT_CHECK_MACHINE])
def test_tables_are_those_of_the_contract(machine: Machine) -> None:
    table = CONTRACT[machine.name]
    assert {str(state) for state in machine.table} == set(table)
    for source, target in product(table, table):
        assert machine.allows(source, target) == (target in table[source].split()), (source, target)


def test_ends_are_ends() -> None:
    for end in ("concluded", "failed", "cancelled"):
        assert ROUND_MACHINE.table[end] == frozenset()
    assert set(SLOT_MACHINE.table) == {"empty", "champion", "quarantined"}
    assert not SLOT_MACHINE.allows("empty", "quarantined")
    assert {str(state) for state in REQUEST_OPEN} == {"open", "approved", "verifying"}


def test_impossible_step_is_a_sentence_and_changes_nothing(world: World) -> None:
    draft = campaign_create(team=world.team, person=world.ada, goal=world.campaign.goal)
    with pytest.raises(ImpossibleTransition, match=r"'draft' cannot become 'finished'\. What can follow: running"):
        transition(draft, CAMPAIGN_MACHINE, "finished")
    draft.refresh_from_db()
    assert (draft.state, draft.version) == ("draft", 1)


def test_whoever_comes_second_is_told(world: World) -> None:
    mine, theirs = (Campaign.objects.get(pk=world.campaign.pk) for _ in range(2))
    transition(mine, CAMPAIGN_MACHINE, "paused")
    with pytest.raises(MovedOn, match="now 'paused'"):
        transition(theirs, CAMPAIGN_MACHINE, "paused")


def test_a_draft_is_started_once(world: World) -> None:
    draft = campaign_create(team=world.team, person=world.ada, goal=world.campaign.goal)
    campaign_start(campaign=draft, person=world.ada)
    with pytest.raises(ImpossibleTransition):
        campaign_start(campaign=draft, person=world.ada)


def test_pause_resume_stop_follow_the_engine_and_cancel_the_queue(world: World) -> None:
    campaign = world.campaign
    job = world.job(world.kernel(medium()))
    campaign_pause(campaign=campaign, person=world.ada, reason="lunch")
    assert (campaign.state, campaign.cause_code, campaign.cause) == ("paused", "person", "lunch")
    with pytest.raises(ImpossibleTransition):
        campaign_pause(campaign=campaign, person=world.ada)
    campaign_resume(campaign=campaign, person=world.ben)
    assert campaign.state == "running"
    campaign_stop(campaign=campaign, person=world.ada, reason="enough")
    assert campaign.state == "stopped"
    assert Job.objects.get(pk=job.pk).state == "cancelled"
    with pytest.raises(ImpossibleTransition, match="needs a campaign that is paused"):
        campaign_resume(campaign=campaign, person=world.ada)


@pytest.mark.parametrize(("change", "key"), [
    ({"grant": "none"}, "grant"), ({"workload": "nope"}, "workload"), ({"operator": "nope"}, ""),
    ({"adjustable": {"BLOCK": [1, 99999999]}}, "adjustable.BLOCK"), ({"surprise": 1}, ""),
    ({"budget": {"rounds": None, "evaluations": None, "seconds": None, "tokens": None}}, "budget"),
])
def test_wrong_goals_name_the_key(world: World, change: dict[str, Any], key: str) -> None:
    before = Campaign.objects.count()
    with pytest.raises(Invalid) as caught:
        campaign_create(team=world.team, person=world.ada, goal={**world.campaign.goal, **change})
    assert caught.value.key == key
    assert Campaign.objects.count() == before


def test_fork_with_an_edited_source_makes_its_author_a_contributor(world: World) -> None:
    fork = campaign_fork(campaign=world.campaign, person=world.ben, source=medium("5"))
    assert (fork.state, fork.fork_of) == ("draft", world.campaign)
    assert {(row.user.username, row.kind) for row in fork.start_kernel.contributions.all()} == {("ben", "edited")}
    with pytest.raises(Invalid):
        campaign_fork(campaign=world.campaign, person=world.ben, source=b"def run(:\n")


def test_closed_request_stays_closed(world: World) -> None:
    request = world.request(medium())
    review_withdraw(request=request, person=world.ada, reason="a better one comes")
    with pytest.raises(ImpossibleTransition):
        transition(request, REQUEST_MACHINE, "approved")
    again = review_open(campaign=world.campaign, kernel=request.kernel, verdict=request.verdict, person=world.ada)
    assert again.pk != request.pk
