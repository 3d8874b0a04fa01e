"""Background work of the worker: the self-test counts where it was made, and makes way for jobs."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest
from django.db.models import F

from apps.bridge.runner.campaign_loop import CampaignRunner
from apps.bridge.runner.idle import IdleWork
from apps.campaigns.jobs.services import job_cancel
from apps.campaigns.models import Campaign, Job, SelfTest
from apps.teams.models import User
from harness.domain.vocabulary import Backend
from harness.hardware.detect import environment
from tests.apps.runner.conftest import PROJECT
from tests.crash.campaigns import begin_campaign

pytestmark = pytest.mark.django_db(transaction=True)
PRINTS = "import json, sys; print(json.dumps({document!r} | {{'asked': sys.argv[1:]}}))"


def _report(**changes: Any) -> dict[str, Any]:
    return {"evaluator": "1.0", "environments": [environment(Backend.NUMBA).class_], "isolation": 3, "passed": True,
            **changes}


def _idle(tmp_path: Path, code: str) -> IdleWork:
    (tmp_path / "doctor.json").write_text("{}")
    made = IdleWork(project=PROJECT, var=tmp_path, report=lambda: None, stopping=lambda: False,
                    command=[sys.executable, "-c", code])
    made._idle_since = time.monotonic() - 60.0
    return made


def _look(idle: IdleWork) -> None:
    idle._due = 0.0
    idle()


def test_the_quick_self_test_runs_once_and_is_kept_for_the_place_it_names(tmp_path: Path) -> None:
    idle = _idle(tmp_path, PRINTS.format(document=_report()))
    _look(idle)
    row = SelfTest.objects.get()
    assert (row.state, row.isolation, row.quick) == ("passed", 3, True)
    assert row.report["asked"] == ["selftest", "--quick", "--backend", "numba", "--json"]
    idle._not_before.clear()
    _look(idle)
    assert SelfTest.objects.count() == 1


def test_a_failed_one_is_kept_as_failed(tmp_path: Path) -> None:
    _look(_idle(tmp_path, PRINTS.format(document=_report(passed=False))))
    assert SelfTest.objects.get().state == "failed"


@pytest.mark.parametrize("code", [
    PRINTS.format(document=_report(passed=None)), PRINTS.format(document=_report(isolation=None)),
    PRINTS.format(document=_report(environments=["a", "b"])), "print('no report')", "raise SystemExit(2)",
])
def test_one_that_judged_nothing_counts_for_nothing(tmp_path: Path, code: str) -> None:
    idle = _idle(tmp_path, code)
    _look(idle)
    assert not SelfTest.objects.exists()
    assert not idle._may("selftest")  # it is not tried over and over


def test_it_makes_way_for_a_job_and_is_tried_again(tmp_path: Path, person: User) -> None:
    campaign = begin_campaign(person)
    from apps.campaigns import services

    fence = services.engine_lease(campaign=campaign)
    CampaignRunner(pk=campaign.pk, fence=fence, stopping=lambda: False, wait=lambda s: None).step()
    Campaign.objects.update(state="paused")
    idle = _idle(tmp_path, "import time; time.sleep(600)")
    _look(idle)
    assert not SelfTest.objects.exists() and idle._may("selftest")
    job_cancel(job=Job.objects.get(), reason="over")
    Campaign.objects.update(state="stopped", version=F("version") + 1)
    idle.command = [sys.executable, "-c", PRINTS.format(document=_report())]
    _look(idle)
    assert SelfTest.objects.get().state == "passed"


def test_nothing_is_begun_while_a_campaign_runs(tmp_path: Path, person: User) -> None:
    begin_campaign(person)
    _look(_idle(tmp_path, PRINTS.format(document=_report())))
    assert not SelfTest.objects.exists()


def test_the_doctors_report_is_asked_for_once(tmp_path: Path) -> None:
    trace = tmp_path / "asked"
    idle = _idle(tmp_path, f"import sys; open({str(trace)!r}, 'a').write(sys.argv[1] + ' '); print('[]')")
    (tmp_path / "doctor.json").unlink()
    idle._not_before["selftest"] = float("inf")
    _look(idle)
    assert trace.read_text() == "doctor "
    _look(idle)
    assert trace.read_text() == "doctor "
