"""Ways in which somebody who made a kernel could pass for somebody who did not."""

from __future__ import annotations

import pytest
from django.test import Client
from gate_world import World, goal, heavy, medium

from apps.campaigns.models import Campaign
from apps.campaigns.services import campaign_create, campaign_fork, campaign_start, engine_lease
from apps.core.errors import Refused
from apps.kernels.services import contribution_add, origin_add
from apps.reviews.policies import contributors
from apps.teams.services import membership_add, role_grant, team_create, token_create


def running(world: World, campaign: Campaign) -> World:
    """The world with this campaign, whose engine is here."""
    from dataclasses import replace

    return replace(world, campaign=campaign, fence=engine_lease(campaign=campaign) or 0, rounds=0)


def test_who_starts_the_draft_of_another_started_it_too(world: World) -> None:
    draft = campaign_create(team=world.team, person=world.ada, goal=goal())
    campaign_start(campaign=draft, person=world.dia)
    request = running(world, draft).request(medium())
    with pytest.raises(Refused, match="contributor"):
        world.decide(request, world.dia)
    world.decide(request, world.ben)


def test_who_made_the_token_started_what_it_starts(world: World) -> None:
    """A maintainer who reviews too lets a token of somebody else begin the campaign."""
    role_grant(team=world.team, user=world.maintainer, role="reviewer", by=world.maintainer)
    _, secret = token_create(team=world.team, user=world.ada, name="t", by=world.maintainer, can_run_campaigns=True)
    made = Client(headers={"Authorization": f"Bearer {secret}"}).post(
        "/api/v1/campaigns", {"team": "kernels", "goal": goal()}, content_type="application/json")
    mine = running(world, Campaign.objects.get(pk=made.json()["id"]))
    mine.measure_baseline()
    verdict = mine.round(medium(), ratios={"incumbent": 1.3, "baseline": 1.3})
    assert verdict.kernel.contributions.filter(user=world.maintainer, kind="started").exists()
    asked = running(world, mine.campaign).request(medium("6"))
    with pytest.raises(Refused, match="contributor"):
        world.decide(asked, world.maintainer)


def test_fork_by_a_friend_does_not_wash_unreviewed_code(world: World) -> None:
    """Dia's campaign made it; Ada forks it, lets one small thing change, and Dia would approve."""
    hers = world.new_campaign(starter=world.dia)
    hers.measure_baseline()
    verdict = hers.round(heavy(), ratios={"incumbent": 1.3, "baseline": 1.3})
    fork = campaign_fork(campaign=hers.campaign, person=world.ada, kernel=verdict.kernel)
    campaign_start(campaign=fork, person=world.ada)
    friend = running(world, fork)
    friend.measure_baseline()
    last = friend.round(heavy().replace(b'"BLOCK": 8', b'"BLOCK": 16'), ratios={"incumbent": 1.3, "baseline": 1.6})
    assert last.kernel.contributions.filter(user=world.dia, kind="started").exists()


def test_what_was_promoted_is_a_step_of_its_own(world: World) -> None:
    """Else a small team had nobody left to review anything after its first champions."""
    hers = world.new_campaign(starter=world.dia)
    assert hers.promote(heavy(), world.ben, world.cem).state == "promoted"
    champion = hers.campaign.slot.champion.kernel
    later = campaign_fork(campaign=hers.campaign, person=world.ada, kernel=champion)
    campaign_start(campaign=later, person=world.ada)
    next_one = running(world, later)
    next_one.measure_baseline()
    verdict = next_one.round(heavy().replace(b'"BLOCK": 8', b'"BLOCK": 16'), ratios={"incumbent": 1.3, "baseline": 1.6})
    assert not verdict.kernel.contributions.filter(user=world.dia).exists()


def test_way_through_another_team_of_the_same_person(world: World) -> None:
    other = team_create(name="Third", slug="third")
    membership_add(team=other, user=world.ben, roles=["engineer"], by=None)
    kernel = world.kernel(medium())
    contribution_add(team=other, kernel=kernel, user=world.ben, kind="edited")
    origin_add(team=other, kernel=kernel, source="edit")
    request = world.request(medium())
    assert world.ben.pk in contributors(request)
    with pytest.raises(Refused, match="contributor"):
        world.decide(request, world.ben)
    world.decide(request, world.cem)


def test_a_clock_set_back_gives_no_role(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    from datetime import timedelta

    from django.utils import timezone

    world.request(medium())
    real = timezone.now
    monkeypatch.setattr(timezone, "now", lambda: real() - timedelta(hours=1))
    with pytest.raises(Refused, match="Set the clock right"):
        role_grant(team=world.team, user=world.vic, role="reviewer", by=world.maintainer)
