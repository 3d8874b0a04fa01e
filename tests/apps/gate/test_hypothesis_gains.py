"""The gain that a person types for an untried idea is a number that a gain can be."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse
from gate_world import World, medium

from apps.campaigns.models import Hypothesis


@pytest.mark.parametrize("typed", ["nan", "inf", "-inf", "-100", "-250", "1e9", "much"])
def test_what_is_no_gain_is_refused_and_changes_nothing(world: World, client: Client, typed: str) -> None:
    world.measure_baseline()
    world.round(medium())
    client.force_login(world.ada)
    ideas = Hypothesis.objects.filter(campaign=world.campaign).exclude(state="struck")
    before = list(ideas.order_by("pk").values())
    fields = {f"gain.{one.key}": "12" for one in ideas} | {f"gain.{ideas.earliest('pk').key}": typed}
    answer = client.post(reverse("campaign-act", args=[world.campaign.pk, "hypotheses"]), fields, follow=True)
    assert "Nothing was changed" in answer.content.decode()
    assert list(ideas.order_by("pk").values()) == before
