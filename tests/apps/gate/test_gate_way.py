"""The way of a kernel to champion, and every requirement that can hold it back."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from gate_world import ENVIRONMENT, World, heavy, light, medium

from apps.bridge import api
from apps.campaigns.jobs.workers import selftest_record
from apps.core.errors import Invalid, MovedOn, Refused
from apps.core.troubleshooting import entry
from apps.kernels.models import Champion, Promotion
from apps.reviews.models import ReviewRequest
from apps.reviews.selectors import gate_requirements, inbox_for
from apps.reviews.services import (
    gate_sweep,
    policy_set,
    review_open,
    review_raise_tier,
    review_withdraw,
    thread_open,
    thread_resolve,
)
from apps.stream.selectors import events_after


def states(request: ReviewRequest) -> dict[str, str]:
    return {line.code: line.state for line in gate_requirements(request)}


def test_medium_change_becomes_champion_after_one_approval_and_a_verification(world: World) -> None:
    request = world.request(medium())
    assert (request.gate_tier, request.state) == ("medium", "open")
    world.decide(request, world.ben)
    request.refresh_from_db()
    assert request.state == "approved"
    request = world.verify(request)
    assert request.state == "promoted"
    champion = Champion.objects.get(slot=world.campaign.slot)
    assert champion.kernel_id == request.kernel_id
    assert champion.slot.state == "champion"
    promotion = Promotion.objects.get()
    assert (promotion.gate_tier, promotion.required_approvals, promotion.kind) == ("medium", 1, "reviewed")
    kinds = [event.kind for event in events_after(world.team.stream, 0)]
    for kind in ("review.opened", "review.decided", "promotion.started", "promotion.done", "champion.changed"):
        assert kind in kinds


def test_heavy_change_needs_two_distinct_people(world: World) -> None:
    request = world.request(heavy())
    assert request.gate_tier == "heavy"
    world.decide(request, world.ben)
    world.decide(request, world.ben)
    request.refresh_from_db()
    assert request.state == "open"
    assert states(request)["approvals"] == "not_met"
    gate_sweep()
    request.refresh_from_db()
    assert request.state == "open"
    world.decide(request, world.cem)
    assert world.verify(request).state == "promoted"
    assert Promotion.objects.get().required_approvals == 2


def test_light_change_needs_one_approval_unless_the_team_lets_it_pass(world: World) -> None:
    request = world.request(light())
    assert (request.gate_tier, request.auto, request.state) == ("light", False, "open")
    review_withdraw(request=request, person=world.ada, reason="policy")
    policy_set(team=world.team, person=world.maintainer, light_auto_promote=True)
    world.campaign.team.refresh_from_db()
    world.campaign.slot.team.refresh_from_db()
    auto = world.request(light(32))
    assert (auto.auto, auto.state) == (True, "approved")
    assert world.verify(auto).state == "promoted"
    assert Promotion.objects.get().kind == "auto"


@pytest.mark.parametrize("facts", [{"suspicious": ("over the roof",)}, {"slow_shape": True}])
def test_light_change_with_a_suspicious_win_or_a_regression_waits_for_a_person(world: World, facts: dict) -> None:
    policy_set(team=world.team, person=world.maintainer, light_auto_promote=True)
    world.campaign.team.refresh_from_db()
    world.campaign.slot.team.refresh_from_db()
    assert world.request(light(), **facts).auto is False


def test_laundering_through_the_incumbent_changes_nothing(world: World) -> None:
    """Two light-looking steps from a heavy incumbent are still a heavy change against the champion."""
    first = heavy()
    second = first.replace(b'"BLOCK": 8', b'"BLOCK": 16')
    world.verdict(first)
    request = world.request(second)
    assert request.gate_tier == "heavy"
    world.decide(request, world.ben)
    gate_sweep()
    request.refresh_from_db()
    assert request.state == "open"
    assert not Promotion.objects.exists()


def test_second_request_against_the_old_champion_goes_stale(world: World) -> None:
    """Two campaigns race for the slot: whoever comes second is compared with a champion that is gone."""
    rival = world.new_campaign()
    mine, theirs = world.request(medium("1")), rival.request(medium("2"))
    for request in (mine, theirs):
        world.decide(request, world.ben)
    gate_sweep()
    mine.refresh_from_db()
    theirs.refresh_from_db()
    assert (mine.state, theirs.state) == ("verifying", "verifying")
    world.answer(mine.verify_job)
    world.answer(theirs.verify_job)
    gate_sweep()
    mine.refresh_from_db()
    theirs.refresh_from_db()
    assert mine.state == "promoted"
    assert theirs.state in ("stale", "closed")
    assert Promotion.objects.count() == 1


def test_approval_of_what_was_not_shown_is_refused(world: World) -> None:
    request = world.request(medium())
    with pytest.raises(MovedOn, match="moved since you opened it"):
        world.decide(request, world.ben, shown_digest="sha256:" + "0" * 64)
    with pytest.raises(MovedOn):
        world.decide(request, world.ben, shown_version=request.version + 7)
    assert not request.decisions.exists()


def test_approval_goes_stale_with_a_policy_change_and_says_why(world: World) -> None:
    request = world.request(medium())
    world.decide(request, world.ben)
    policy_set(team=world.team, person=world.maintainer, approvals_medium=2)
    gate_sweep()
    request.refresh_from_db()
    assert (request.state, request.cause_code) == ("stale", "policy_changed")
    assert "policy changed" in request.cause
    with pytest.raises(MovedOn, match="stale"):
        world.decide(request, world.cem)


def test_old_proof_of_identity_is_not_enough(world: World) -> None:
    request = world.request(medium())
    for proof in (None, timezone.now() - timedelta(minutes=16), timezone.now() + timedelta(minutes=5)):
        with pytest.raises(Refused, match="password again"):
            world.decide(request, world.ben, reauthenticated_at=proof)
    assert not request.decisions.exists()


def test_verification_that_cannot_tell_closes_the_request_with_the_numbers(world: World) -> None:
    request = world.request(medium())
    world.decide(request, world.ben)
    request = world.verify(request, ratios={"baseline": 1.001})
    assert request.state == "closed"
    assert "cannot tell" in request.cause and "×" in request.cause
    assert not Promotion.objects.exists()


def test_verification_that_fails_closes_the_request(world: World) -> None:
    request = world.request(medium())
    world.decide(request, world.ben)
    request = world.verify(request, outcome="incorrect_numeric")
    assert (request.state, "incorrect_numeric" in request.cause) == ("closed", True)


def test_verification_below_the_isolation_level_promotes_nothing(world: World) -> None:
    request = world.request(medium())
    world.decide(request, world.ben)
    request = world.verify(request, isolation=1)
    assert request.state == "closed"
    assert not Promotion.objects.exists()


def test_claimed_times_are_no_evidence(world: World) -> None:
    request = world.request(medium(), evidence="claimed")
    assert states(request)["verdict"] == "not_met"
    world.decide(request, world.ben)
    gate_sweep()
    request.refresh_from_db()
    assert request.state == "open"


def test_every_requirement_has_a_troubleshooting_entry_for_requests_that_end_by_it(world: World) -> None:
    assert not [code for code in states(world.request(medium())) if entry(code) is None]


def test_slower_shape_must_be_accepted_by_name(world: World) -> None:
    request = world.request(medium(), slow_shape=True)
    assert states(request)["regressions"] == "not_met"
    world.decide(request, world.ben)
    request.refresh_from_db()
    assert request.state == "open"
    with pytest.raises(Invalid, match="not among the slower shapes"):
        world.decide(request, world.cem, ticked=["8192x8192"])
    world.decide(request, world.cem, ticked=["1x128"])
    assert states(request)["regressions"] == "met"
    assert world.verify(request, slow_shape=True).state == "promoted"


def test_a_shape_that_only_the_verification_finds_slower_stops_the_promotion(world: World) -> None:
    request = world.request(medium())
    world.decide(request, world.ben)
    request = world.verify(request, slow_shape=True)
    assert (request.state, request.cause_code) == ("stale", "regressions")
    assert not Promotion.objects.exists()


def test_what_only_the_verification_found_is_accepted_by_name_in_the_next_request(world: World, client: Client) -> None:
    world.measure_baseline()
    world.round(medium())
    client.force_login(world.ada)
    submit = reverse("campaign-act", args=[world.campaign.pk, "submit"])
    client.post(submit)
    first = ReviewRequest.objects.get()
    assert not first.verdict.regressions
    world.decide(first, world.ben)
    first = world.verify(first, slow_shape=True)
    assert (first.state, first.cause_code) == ("stale", "regressions")
    client.post(submit)
    second = ReviewRequest.objects.latest("id")
    assert (second.pk != first.pk, second.state, second.verdict) == (True, "open", first.verify_verdict)
    assert states(second)["regressions"] == "not_met" and states(second)["approvals"] == "not_met"
    world.decide(second, world.cem, ticked=["1x128"])
    assert world.verify(second, slow_shape=True).state == "promoted"


def test_blocking_thread_holds_the_approval_until_it_is_resolved(world: World) -> None:
    request = world.request(medium())
    thread = thread_open(request=request, person=world.cem, text="Why 3?", kernel=request.kernel, line=3, blocking=True)
    world.decide(request, world.ben)
    request.refresh_from_db()
    assert request.state == "open"
    with pytest.raises(Refused, match="only Cem or a maintainer"):
        thread_resolve(thread=thread, person=world.ben)
    thread_resolve(thread=thread, person=world.cem)
    gate_sweep()
    request.refresh_from_db()
    assert request.state == "verifying"


def test_failed_selftest_holds_promotions_and_lets_them_go_on_afterwards(world: World) -> None:
    request = world.request(medium())
    world.decide(request, world.ben)
    facts = {"evaluator_version": api.evaluator_version(), "environment_class": ENVIRONMENT, "isolation": 3,
             "backend": "numba", "quick": True, "report": {}}
    selftest_record(passed=False, **facts)
    gate_sweep()
    request.refresh_from_db()
    assert request.state == "approved"
    assert states(request)["selftest"] == "not_met"
    selftest_record(passed=True, **facts)
    assert world.verify(request).state == "promoted"


def test_raised_tier_asks_for_more_people_and_cannot_be_lowered(world: World) -> None:
    request = world.request(medium())
    with pytest.raises(Refused, match="never lowered"):
        review_raise_tier(request=request, person=world.ben, tier="light", reason="simple")
    review_raise_tier(request=request, person=world.ben, tier="heavy", reason="it touches the accumulator")
    world.decide(request, world.ben)
    request.refresh_from_db()
    assert request.state == "open"
    world.decide(request, world.cem)
    assert world.verify(request).state == "promoted"
    assert Promotion.objects.get().gate_tier == "heavy"


def test_one_open_request_per_campaign_replaced_only_while_nobody_looked(world: World) -> None:
    first = world.request(medium("1"))
    second = world.request(medium("2"))
    first.refresh_from_db()
    assert (first.state, first.cause_code) == ("withdrawn", "replaced")
    thread_open(request=second, person=world.vic, text="Looks odd.")
    verdict = world.verdict(medium("3"))
    with pytest.raises(Refused, match="being reviewed"):
        review_open(campaign=world.campaign, kernel=verdict.kernel, verdict=verdict)


def test_inbox_holds_what_waits_for_this_person(world: World) -> None:
    request = world.request(heavy())
    assert inbox_for(world.ben) == [request]
    assert inbox_for(world.ada) == [] == inbox_for(world.stranger)
    world.decide(request, world.ben)
    assert inbox_for(world.ben) == []
    assert inbox_for(world.cem) == [request]
