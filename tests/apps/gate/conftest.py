"""The world of the gate's tests."""

from __future__ import annotations

import pytest
from gate_world import World, make_world


@pytest.fixture
def world(db: None) -> World:
    """A fresh team with people, a running campaign, and a passed self-test."""
    return make_world()
