"""What stands beside the figures of a review: the goal, a loosened tolerance, how many were tried, who helped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import pytest
from django.test import Client
from gate_world import World, medium

from apps.bridge import api
from apps.campaigns.choices import CampaignState
from apps.campaigns.models import Campaign
from apps.kernels.screens.verdicts import sheet_of
from apps.reviews.models import ReviewRequest
from apps.reviews.screens import asked, review
from apps.reviews.selectors import spot_checks_for
from apps.reviews.services import spot_check_ask
from apps.reviews.waiting import waiting_count

REASON = "Sums in bfloat16 <b>are</b> accepted downstream."


def words(found: list[asked.Fact]) -> dict[str, str]:
    """Texts by name."""
    return {one.name: one.text for one in found}


def test_a_loosened_tolerance_comes_first_with_its_reason_and_is_escaped(
    world: World, sign_in: Callable[..., Client]
) -> None:
    request = ReviewRequest.objects.get()
    goal = dict(world.campaign.goal) | {"limits": {"tolerance": {"relative": 1e-3, "reason": REASON}}}
    found = asked.asked(goal, "Ada")
    assert (found[0].name, found[0].warn) == ("Looser error", True)
    assert "1.0e−3 relative" in found[0].text and REASON in found[0].text and "Ada" in found[0].text
    assert not [one for one in asked.asked(world.campaign.goal, "Ada") if one.warn]
    page = sign_in(world.ben).get(f"/reviews/{request.pk}/").content.decode()
    assert "Behind it" in page and "Objective" in page and "Not allowed" in page


def test_it_says_out_of_how_many_and_who_had_a_hand_in_it(world: World) -> None:
    world.round(medium("0.91"), ratios={"incumbent": 0.9, "baseline": 1.2})
    request = ReviewRequest.objects.get()
    text = words(asked.facts(request, None))
    rounds = world.campaign.rounds.filter(number__gt=0)
    assert f"in {rounds.count()} round" in text["Tried"] and "fresh seeds" in text["Tried"]
    assert world.ada.name in text["Contributors"] and world.ben.name not in text["Contributors"]
    assert "had no champion" in text["Compared with"]


@pytest.mark.parametrize(("speed_up", "warn"), [(1.0001, True), (1000.0, False)])
def test_the_best_library_is_named_or_said_to_be_missing(
    world: World, monkeypatch: pytest.MonkeyPatch, speed_up: float, warn: bool
) -> None:
    request = ReviewRequest.objects.get()
    assert "none was measured" in words(asked.facts(request, None))["Best library"]
    eager = api.LibraryFacts("eager", "2.11", 3.0, 3, 3, "")
    rows = (replace(eager, name="broken", over_baseline=None, absent="wrong"), eager)
    monkeypatch.setattr(asked.api, "libraries", lambda *_: rows)
    monkeypatch.setattr(asked, "over_baseline", lambda *_: speed_up)
    found = asked.library(request, None)
    assert found.text.startswith("eager 2.11;") and found.warn is warn


def test_the_opponent_has_the_name_that_the_request_gives_it(world: World) -> None:
    first = world.campaign.rounds.get(number=1)
    assert first.verdict is not None and first.verdict.against["incumbent"] == world.campaign.start_kernel_id
    against = SimpleNamespace(verdict=first.verdict, base_id=world.campaign.start_kernel_id, champion_id=None)
    made = sheet_of(first.verdict)
    assert made is not None and made.role_word == "incumbent"
    assert review.named(made, against).role_word == "baseline"  # type: ignore[arg-type, union-attr]
    against.champion_id = against.base_id
    assert review.named(made, against).role_word == "champion"  # type: ignore[arg-type, union-attr]


def test_the_figures_stand_in_the_bar_where_the_decision_is_made(
    world: World, sign_in: Callable[..., Client]
) -> None:
    page = sign_in(world.ben).get(f"/reviews/{ReviewRequest.objects.get().pk}/").content.decode()
    bar = page[page.index('class="at-stake"'):]
    bar = bar[:bar.index("</p>")]
    assert "×" in bar and "heavy" in bar and "1 of 1 case<" in bar and "0 of 5 tabs seen" in bar


def test_a_spot_check_of_an_ended_campaign_waits_for_nobody(world: World) -> None:
    before = waiting_count(world.ben)
    spot_check_ask(campaign=world.campaign, round_number=1, fence=world.fence)
    assert len(spot_checks_for(world.ben)) == 1 and waiting_count(world.ben) == before + 1
    Campaign.objects.filter(pk=world.campaign.pk).update(state=CampaignState.STOPPED)
    assert spot_checks_for(world.ben) == [] and waiting_count(world.ben) == before
