"""A running campaign, a worker with a stand-in evaluator, and a runner for the campaign."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from apps.bridge import api
from apps.bridge.runner.campaign_loop import CampaignRunner
from apps.bridge.runner.evaluator import Evaluator
from apps.bridge.runner.worker import EvaluationWorker
from apps.campaigns import services
from apps.campaigns.models import Campaign
from apps.teams.models import User
from tests.crash.campaigns import begin_campaign, make_person

PROJECT = Path(__file__).parents[3]
QUICK = [sys.executable, str(PROJECT / "tests" / "crash" / "fake_evaluator.py")]
SCRIPTED = [sys.executable, str(Path(__file__).with_name("scripted_child.py"))]


@pytest.fixture
def person(transactional_db: None) -> User:
    """An engineer."""
    return make_person()


@pytest.fixture
def campaign(person: User) -> Campaign:
    """A running campaign of two rounds."""
    return begin_campaign(person, rounds=2)


@pytest.fixture
def worker(transactional_db: None) -> Iterator[EvaluationWorker]:
    """A worker whose evaluator answers quickly with invented times."""
    made = EvaluationWorker(evaluator=Evaluator(project=PROJECT, command=QUICK), hardware=api.hardware_here(),
                            backends=["numba", "triton"], beat=lambda verdict: True)
    yield made
    made.evaluator.close()


@pytest.fixture
def drive() -> Callable[[Campaign], CampaignRunner]:
    """A runner that holds the campaign's lease."""

    def make(campaign: Campaign) -> CampaignRunner:
        fence = services.engine_lease(campaign=campaign)
        assert fence is not None
        return CampaignRunner(pk=campaign.pk, fence=fence, stopping=lambda: False, wait=lambda seconds: None)

    return make
