"""The world of the gate's tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from gate_world import World, begun_now, standing


@pytest.fixture(scope="module")
def shared_world(django_db_setup: None, django_db_blocker: Any) -> Iterator[World]:
    """The world of ``world``, made once for a module."""
    with standing(django_db_blocker) as made:
        yield made


@pytest.fixture
def world(shared_world: World, db: None) -> World:
    """A team with people, a running campaign, and a passed self-test."""
    return begun_now(shared_world)
