"""The gate's world, for the tests of roles, machines and leases."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "gate"))

from gate_world import World, make_world


@pytest.fixture
def world(db: None) -> World:
    """A fresh team with people, a running campaign, and a passed self-test."""
    return make_world()
