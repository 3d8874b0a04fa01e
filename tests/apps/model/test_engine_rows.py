"""Rows follow the engine's fold: rounds, incumbents, hypotheses, events; and nothing is told twice."""

from __future__ import annotations

import pytest
from gate_world import World, light, medium

from apps.bridge import api
from apps.campaigns.models import EngineResult
from apps.campaigns.selectors import log_of
from apps.campaigns.services import (
    engine_lease,
    engine_state,
    engine_tell,
    engine_tell_verdict,
    hypotheses_edit,
    results_of,
    round_start,
    start_document,
)
from apps.core.errors import ImpossibleTransition, LeaseLost
from apps.reviews.models import SpotCheck
from apps.reviews.services import spot_check_answer, spot_check_ask
from apps.stream.selectors import events_after


def test_a_round_leaves_its_rows_log_entry_and_events(world: World) -> None:
    world.measure_baseline()
    verdict = world.round(medium())
    campaign = world.campaign
    row = campaign.rounds.get(number=1)
    assert (row.state, row.outcome, row.comparison, row.conclusion) == ("concluded", "passed", "faster", "confirmed")
    assert row.verdict == verdict
    assert row.direction == "tiling:_rms_norm"
    assert campaign.incumbent == row.kernel
    assert campaign.incumbent_verdict == verdict
    assert campaign.rounds.get(number=0).state == "concluded"
    assert [entry["round"] for entry in log_of(campaign)] == [1]
    assert tuple(log_of(campaign)[0]) == api.log_columns()
    assert {h.key: h.state for h in campaign.hypotheses.all()} == {"h1": "tried", "h1a": "open", "h1b": "open"}
    kinds = [event.kind for event in events_after(campaign.stream, 0)]
    assert kinds == ["campaign.started", "round.started", "round.verdict", "round.concluded", "round.started",
                     "round.proposed", "round.hypotheses", "round.verdict", "round.concluded"]
    assert [event.seq for event in events_after(campaign.stream, 0)] == list(range(1, len(kinds) + 1))


def test_rebuilding_the_engine_from_rows_gives_the_same_state(world: World) -> None:
    world.measure_baseline()
    world.round(medium())
    world.round(light(), ratios={"incumbent": 1.0})
    facts = api.engine_fold(start_document(world.campaign), results_of(world.campaign))
    assert api.facts_of(engine_state(world.campaign)) == facts
    rows = {row.number: (row.state, row.conclusion) for row in world.campaign.rounds.filter(number__gt=0)}
    assert rows == {record.number: (record.state, record.conclusion) for record in facts.rounds}


def test_a_result_that_cannot_follow_is_not_written(world: World) -> None:
    world.measure_baseline()
    verdict = world.round(medium())
    before = EngineResult.objects.count()
    with pytest.raises(ImpossibleTransition):
        engine_tell_verdict(campaign=world.campaign, fence=world.fence, round_number=1, verdict=verdict)
    assert EngineResult.objects.count() == before


def test_an_engine_that_lost_its_lease_tells_nothing(world: World) -> None:
    old = world.fence
    fresh = engine_lease(campaign=world.campaign)
    assert fresh is not None and fresh > old
    with pytest.raises(LeaseLost):
        engine_tell(campaign=world.campaign, fence=old, document=api.engine_result("BudgetClock", seconds=3.0))
    with pytest.raises(LeaseLost):
        round_start(campaign=world.campaign, fence=old, number=1)
    engine_tell(campaign=world.campaign, fence=fresh, document=api.engine_result("BudgetClock", seconds=3.0))
    world.campaign.refresh_from_db()
    assert world.campaign.active_seconds == 3.0


def test_round_start_is_idempotent(world: World) -> None:
    world.measure_baseline()
    first = round_start(campaign=world.campaign, fence=world.fence, number=1)
    head = len(events_after(world.campaign.stream, 0))
    assert round_start(campaign=world.campaign, fence=world.fence, number=1) == first
    assert len(events_after(world.campaign.stream, 0)) == head


def test_edited_hypotheses_strike_what_was_left_out(world: World) -> None:
    world.measure_baseline()
    world.round(medium())
    kept = {"id": "h1a", "direction": "fusion", "function": "_rms_norm", "text": "Fuse both loops.",
            "evidence": "profile", "expected_gain": 0.5}
    hypotheses_edit(campaign=world.campaign, person=world.ben, hypotheses=[kept])
    rows = {row.key: row for row in world.campaign.hypotheses.all()}
    assert (rows["h1a"].text, rows["h1a"].edited_by) == ("Fuse both loops.", world.ben)
    assert rows["h1b"].state == "struck"


def test_spot_check_comment_reaches_the_engine(world: World) -> None:
    world.measure_baseline()
    world.round(medium())
    check = spot_check_ask(campaign=world.campaign, round_number=1, fence=world.fence)
    spot_check_answer(check=check, person=world.ben, comment="The tail looks odd.", concern=True)
    assert SpotCheck.objects.get().state == "answered"
    assert engine_state(world.campaign).feedback[-1].text == "The tail looks odd."
    with pytest.raises(ImpossibleTransition):
        spot_check_answer(check=check, person=world.cem)
