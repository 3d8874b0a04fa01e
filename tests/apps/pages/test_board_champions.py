"""The list of boards names champions. Its world has none yet, so that it is one of its own."""

from __future__ import annotations

from collections.abc import Callable

from django.test import Client
from gate_world import make_world, medium


def test_the_list_says_where_champions_stand(db: None, sign_in: Callable[..., Client]) -> None:
    world = make_world()
    assert "none yet" in sign_in(world.vic).get("/leaderboards/").content.decode()
    world.promote(medium("3"), world.ben)
    assert "1 of 1 team<" in sign_in(world.vic).get("/leaderboards/").content.decode()
