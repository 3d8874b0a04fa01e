"""A device in use with a worker that is up, and its canary."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gate"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from canary_world import Canary
from gate_world import ENVIRONMENT, HARDWARE, World, make_world

from apps.bridge import api
from apps.campaigns.jobs.workers import worker_beat
from apps.campaigns.models import Campaign


@pytest.fixture
def world(db: None) -> World:
    """The gate's world; nothing runs, and a worker of its device is up and has proved its walls."""
    made = make_world()
    Campaign.objects.update(state="plateau")
    worker_beat(name=f"evalworker:{HARDWARE}", kind="evalworker", hardware=HARDWARE, backends=["numba"], isolation=3,
                proved=["netns"], environment={"class": ENVIRONMENT}, evaluator_version=api.evaluator_version())
    return made


@pytest.fixture
def canary(world: World) -> Canary:
    """The canary of the world's device."""
    return Canary(world)


@pytest.fixture
def drifted(canary: Canary) -> Canary:
    """A device that drifts: three readings of reference, then two that took six per cent longer."""
    for factor in (1.0, 1.001, 0.999, 1.06, 1.06):
        canary.read(factor)
    return canary
