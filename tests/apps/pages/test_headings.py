"""Headings go down one level at a time, on pages that are full and on the same pages before anything happened."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

import pytest
from django.test import Client
from gate_world import World

from apps.kernels.services import operators_sync
from apps.teams.services import team_create, user_create

MAIN = re.compile(r"<main\b.*?</main>", re.S)
LEVEL = re.compile(r"<h([1-6])\b")
LISTS = ("/", "/campaigns/", "/campaigns/new/", "/campaigns/compare/", "/reviews/", "/operators/", "/leaderboards/",
         "/leaderboards/softmax/", "/system/", "/hardware/", "/hardware/nvidia-h200/", "/operators/softmax/")


def jumps(text: str) -> list[tuple[int, int]]:
    """Pairs of levels of which the second lies more than one below the first."""
    main = MAIN.search(text)
    assert main is not None
    levels = [0, *(int(level) for level in LEVEL.findall(main.group(0)))]
    return [(above, below) for above, below in itertools.pairwise(levels) if below > above + 1]


@pytest.mark.parametrize("address", LISTS)
def test_before_anything_happened(db: None, sign_in: Callable[..., Client], address: str) -> None:
    person = user_create(username="mia", password="a long password", name="Mia")
    team_create(name="New", slug="new", founder=person)
    operators_sync()
    answer = sign_in(person).get(address)
    assert answer.status_code == 200
    assert jumps(answer.content.decode()) == [], address


def test_full_pages(world: World, sign_in: Callable[..., Client]) -> None:
    operators_sync()
    client = sign_in(world.ben)
    slot, campaign = world.campaign.slot, world.campaign
    assert campaign.incumbent is not None and campaign.incumbent_verdict is not None
    for address in (*LISTS, f"/campaigns/{campaign.pk}/", f"/campaigns/{campaign.pk}/rounds/3/", "/reviews/1/",
                    f"/kernels/{campaign.incumbent.short}/", f"/verdicts/{campaign.incumbent_verdict.pk}/",
                    f"/operators/{slot.operator}/{slot.backend}/{slot.hardware}/{slot.workload}/", "/audit/",
                    f"/leaderboards/{slot.operator}/", "/teams/kernels/"):
        assert jumps(client.get(address).content.decode()) == [], address
