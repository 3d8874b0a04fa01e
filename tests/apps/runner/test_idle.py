"""Background work of the worker: the self-test counts where it was made, and makes way for jobs."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from django.db.models import F
from django.utils import timezone

from apps.audit.models import AuditEntry
from apps.bridge import api
from apps.bridge.runner.campaign_loop import CampaignRunner
from apps.bridge.runner.demo.names import people_at_work
from apps.bridge.runner.idle import IdleWork, job_waits
from apps.bridge.runner.worker import person_waits
from apps.campaigns.jobs.handback import urgent_job_waits
from apps.campaigns.jobs.selftest_orders import order_waits, selftest_order
from apps.campaigns.jobs.services import job_cancel, job_lease
from apps.campaigns.jobs.waiting import due
from apps.campaigns.jobs.workers import worker_beat
from apps.campaigns.models import Campaign, Job, SelfTest
from apps.core.errors import Refused
from apps.teams.models import Team, User
from harness import EVALUATOR_VERSION
from harness.domain.vocabulary import Backend
from harness.hardware.detect import environment
from tests.apps.runner.conftest import PROJECT
from tests.crash.campaigns import begin_campaign, make_person

pytestmark = pytest.mark.django_db(transaction=True)
PRINTS = "import json, sys; print(json.dumps({document!r} | {{'asked': sys.argv[1:]}}))"


def _report(**changes: Any) -> dict[str, Any]:
    return {"evaluator": EVALUATOR_VERSION, "environments": [environment(Backend.NUMBA).class_], "isolation": 3,
            "passed": True, **changes}


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
    Campaign.objects.update(state="paused", version=F("version") + 1)
    begun = []

    def resumed() -> None:  # while the self-test runs
        begun.append(Campaign.objects.update(state="running", version=F("version") + 1))

    idle = _idle(tmp_path, "import time; time.sleep(600)")
    idle.report = resumed
    _look(idle)
    assert begun and not SelfTest.objects.exists() and idle._may("selftest")
    begun.clear()
    _look(idle)
    assert not begun  # it would make way at once
    job_cancel(job=Job.objects.get(), reason="over")
    Campaign.objects.update(state="stopped", version=F("version") + 1)
    idle.command = [sys.executable, "-c", PRINTS.format(document=_report())]
    _look(idle)
    assert not SelfTest.objects.exists()  # idle again for a moment only
    idle._idle_since -= 60.0
    _look(idle)
    assert SelfTest.objects.get().state == "passed"


def test_a_job_that_nobody_would_be_given_keeps_nothing_from_its_turn(tmp_path: Path, person: User) -> None:
    """Of a paused campaign, or for a device that no worker has."""
    campaign = begin_campaign(person)
    from apps.campaigns import services

    fence = services.engine_lease(campaign=campaign)
    CampaignRunner(pk=campaign.pk, fence=fence, stopping=lambda: False, wait=lambda s: None).step()
    job = Job.objects.get()
    assert (job.state, due().count(), job_waits(job.hardware)) == ("queued", 1, True)
    Campaign.objects.update(state="paused", version=F("version") + 1)
    assert not due().exists() and not job_waits(job.hardware)
    Campaign.objects.update(state="running", version=F("version") + 1)
    Job.objects.update(hardware="cpu-of-somebody-else", version=F("version") + 1)
    assert due().exists() and not job_waits(job.hardware) and not person_waits(job.hardware)
    Campaign.objects.update(state="paused", version=F("version") + 1)
    _look(_idle(tmp_path, PRINTS.format(document=_report())))
    assert SelfTest.objects.get().state == "passed"


def test_nothing_is_begun_while_another_lane_of_the_device_has_a_job(tmp_path: Path, person: User) -> None:
    campaign = begin_campaign(person)
    from apps.campaigns import services

    fence = services.engine_lease(campaign=campaign)
    CampaignRunner(pk=campaign.pk, fence=fence, stopping=lambda: False, wait=lambda s: None).step()
    idle = _idle(tmp_path, PRINTS.format(document=_report()))
    leased = job_lease(hardware=idle.hardware, backends=["numba"])
    assert leased is not None
    Campaign.objects.update(state="paused", version=F("version") + 1)
    _look(idle)
    assert not SelfTest.objects.exists() and idle._idle_since > time.monotonic() - 30.0
    assert idle._may("selftest")


def test_a_background_job_goes_on_beside_a_job_that_nobody_would_be_given(person: User) -> None:
    campaign = begin_campaign(person)
    from apps.campaigns import services

    fence = services.engine_lease(campaign=campaign)
    CampaignRunner(pk=campaign.pk, fence=fence, stopping=lambda: False, wait=lambda s: None).step()
    waiting = Job.objects.get()
    background = Job(hardware=waiting.hardware, priority=waiting.priority - 1)
    assert urgent_job_waits(job=background)
    Campaign.objects.update(state="paused", version=F("version") + 1)
    assert not urgent_job_waits(job=background)


def test_nothing_is_begun_while_a_campaign_runs(tmp_path: Path, person: User) -> None:
    begin_campaign(person)
    _look(_idle(tmp_path, PRINTS.format(document=_report())))
    assert not SelfTest.objects.exists()


def test_a_campaign_that_waits_for_an_outside_agent_keeps_nothing_from_its_turn(
    tmp_path: Path, person: User
) -> None:
    from apps.campaigns import services

    campaign = begin_campaign(person, agent="mcp")
    assert not people_at_work()
    _look(_idle(tmp_path, PRINTS.format(document=_report())))
    assert SelfTest.objects.get().state == "passed"
    fence = services.engine_lease(campaign=campaign)
    CampaignRunner(pk=campaign.pk, fence=fence, stopping=lambda: False, wait=lambda s: None).step()
    assert Job.objects.exists() and people_at_work()


def test_the_doctors_report_is_asked_for_once(tmp_path: Path) -> None:
    trace = tmp_path / "asked"
    idle = _idle(tmp_path, f"import sys; open({str(trace)!r}, 'a').write(sys.argv[1] + ' '); print('[]')")
    (tmp_path / "doctor.json").unlink()
    idle._not_before["selftest"] = float("inf")
    _look(idle)
    assert trace.read_text() == "doctor "
    _look(idle)
    assert trace.read_text() == "doctor "


def test_an_old_report_of_the_doctor_is_renewed(tmp_path: Path) -> None:
    idle = _idle(tmp_path, "print('[]')")
    assert idle._examined()
    os.utime(tmp_path / "doctor.json", (time.time() - 90_000,) * 2)
    assert not idle._examined()


def _long_idle(tmp_path: Path, code: str) -> IdleWork:
    idle = _idle(tmp_path, code)
    idle._idle_since = time.monotonic() - 3600.0
    return idle


def test_the_whole_corpus_runs_when_idle_once_a_day_and_keeps_each_result_until_it_is_complete(tmp_path: Path) -> None:
    quick = _idle(tmp_path, PRINTS.format(document=_report()))
    _look(quick)
    idle = _long_idle(tmp_path, "import sys; open(sys.argv[sys.argv.index('--resume') + 1], 'a').write('half')")
    _look(idle)
    kept = tmp_path / "selftest" / f"{api.hardware_here()}.jsonl"
    assert kept.read_text() == "half" and SelfTest.objects.count() == 1  # ended before it was complete
    idle._not_before.clear()
    idle.command = [sys.executable, "-c", PRINTS.format(document=_report(quick=False))]
    _look(idle)
    row = SelfTest.objects.get(quick=False)
    assert row.report["asked"] == ["selftest", "--backend", "numba", "--json", "--resume", str(kept)]
    assert not kept.exists()
    idle._not_before.clear()
    _look(idle)
    assert SelfTest.objects.count() == 2


def test_a_gpus_worker_tests_what_is_judged_on_the_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "environment_class_here", lambda device, backend: f"{device}/{backend}")
    idle = _idle(tmp_path, PRINTS.format(document=_report(environments=["nvidia-h200/triton"])))
    idle.hardware, idle.backend = "nvidia-h200", "triton"
    _look(idle)
    row = SelfTest.objects.get()
    assert (row.backend, row.environment_class) == ("triton", "nvidia-h200/triton")
    assert row.report["asked"] == ["selftest", "--quick", "--backend", "triton", "--json", "--hardware", "nvidia-h200"]
    idle._not_before.clear()
    _look(idle)
    assert SelfTest.objects.count() == 1


def test_a_maintainer_orders_a_pass_which_runs_at_once_and_answers_the_order(tmp_path: Path, person: User) -> None:
    maintainer = make_person("mira", "maintainer")
    team = Team.objects.get(slug="core")
    worker = worker_beat(name="evalworker:x", kind="evalworker", hardware=api.hardware_here(), backends=["numba"])
    with pytest.raises(Refused):
        selftest_order(worker=worker, quick=False, person=person, team=team)
    order = selftest_order(worker=worker, quick=False, person=maintainer, team=team)
    assert selftest_order(worker=worker, quick=False, person=maintainer, team=team) == order
    assert AuditEntry.objects.get(verb="selftest.ordered").actor == maintainer
    begin_campaign(person)  # no job of it waits yet: what a person asked for goes first
    old = tmp_path / "selftest" / f"{api.hardware_here()}.jsonl"
    old.parent.mkdir()
    old.write_text(f'{{"at": {timezone.now().timestamp() - 60}}}\n')
    idle = _idle(tmp_path, PRINTS.format(document=_report(quick=False, passed=False)))
    idle.busy()
    _look(idle)
    order.refresh_from_db()
    assert order.test is not None and order.test.state == "failed" and not order.test.quick
    assert not old.exists() and order_waits(api.hardware_here()) is None


def test_interim_results_from_before_the_order_do_not_answer_it(tmp_path: Path) -> None:
    from apps.bridge.runner.idle import _make_room

    kept, now = tmp_path / "selftest" / "x.jsonl", timezone.now()
    _make_room(kept, now)
    kept.write_text(f'\n{{"at": {now.timestamp() + 1}}}\nhalf a line')
    _make_room(kept, now)
    assert kept.exists()
    _make_room(kept, None)
    assert kept.exists()
    kept.write_text(f'\n{{"at": {now.timestamp() - 1}}}\n{{"at": {now.timestamp() + 1}}}')
    _make_room(kept, now)
    assert not kept.exists()


def test_interim_results_that_others_may_have_written_answer_nothing(tmp_path: Path) -> None:
    """Every cheat refused, says a file that somebody else put there or linked to."""
    from apps.bridge.runner.idle import _make_room

    kept, other = tmp_path / "selftest" / "x.jsonl", tmp_path / "theirs"
    other.write_text("{}")
    _make_room(kept, None)
    assert kept.parent.stat().st_mode & 0o077 == 0
    for put in (lambda: kept.symlink_to(other), lambda: kept.hardlink_to(other),
                lambda: (kept.write_text("{}"), kept.chmod(0o666)), lambda: kept.symlink_to(tmp_path / "none"),
                lambda: kept.write_text(f'{{"at": {time.time() + 9e6}}}')):
        put()
        _make_room(kept, None)
        assert not os.path.lexists(kept)
    assert other.exists()
    kept.write_text(f'{{"at": {time.time()}}}')
    _make_room(kept, None)
    assert kept.exists()
