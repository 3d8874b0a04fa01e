"""The demo: people once, campaigns one after the other, a first approval through the page like anybody's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pytest_django.live_server_helper import LiveServer

from apps.bridge.runner.campaign_loop import CampaignRunner, Step
from apps.bridge.runner.closing import ClosingErrand
from apps.bridge.runner.demo.browser import Forms, Refusal, approve
from apps.bridge.runner.demo.director import SCENES, Director
from apps.bridge.runner.demo.people import PEOPLE, seed_people
from apps.bridge.runner.demo.reports import ReportsErrand, committed
from apps.bridge.runner.worker import EvaluationWorker
from apps.campaigns.models import Campaign
from apps.imports.models import ImportedReport
from apps.kernels.services import operators_sync
from apps.reviews.models import Decision, ReviewRequest
from apps.teams.models import User
from apps.teams.services import role_revoke
from tests.apps.gate.gate_world import heavy, make_world
from tests.apps.imports.report_world import as_file, report
from tests.crash.campaigns import begin_campaign, make_person

pytestmark = pytest.mark.django_db(transaction=True)


def test_people_are_seeded_once_and_roles_taken_away_stay_away(transactional_db: None) -> None:
    team = seed_people()
    maintainer = User.objects.get(username="mira")
    role_revoke(team=team, user=User.objects.get(username="rosa"), role="reviewer", by=maintainer)
    seed_people()
    assert User.objects.filter(demo=True).count() == len(PEOPLE)
    assert not User.objects.get(username="rosa").memberships.get().grants.filter(revoked_at=None).exists()


def _drive_all(drive: Callable[[Campaign], CampaignRunner], worker: EvaluationWorker) -> None:
    """What engine and worker do until every campaign rests."""
    closing = ClosingErrand()
    for campaign in Campaign.objects.filter(state="running"):
        runner = drive(campaign)
        while (step := runner.step()) is not Step.SETTLED:
            if step is Step.WAITS:
                assert worker.work_once()
    closing()
    if worker.work_once():
        closing()


def test_scenes_are_played_one_after_the_other_and_again_only_without_their_request(
    transactional_db: None, settings: Any, drive: Callable[[Campaign], CampaignRunner], worker: EvaluationWorker
) -> None:
    settings.DEMO = True
    operators_sync()
    seed_people()
    director = Director()
    for _ in range(40):
        director()
        assert Campaign.objects.filter(state="running").count() <= 1
        _drive_all(drive, worker)
    for scene in SCENES:
        played = [name for name in scene.names() if Campaign.objects.filter(name=name, state="finished").exists()]
        found = ReviewRequest.objects.filter(campaign__name__in=played, gate_tier=scene.tier)
        assert 1 <= len(played) <= scene.runs
        assert found.exists() or len(played) == scene.runs
    assert not Decision.objects.exists()  # no site to open, so nobody approved anything


def test_the_demo_begins_nothing_while_a_person_works(transactional_db: None, settings: Any) -> None:
    settings.DEMO = True
    seed_people()
    begin_campaign(make_person("newcomer"))
    Director()()
    assert Campaign.objects.count() == 1


def test_an_approval_is_given_on_the_bytes_that_the_page_shows(
    live_server: LiveServer, transactional_db: None
) -> None:
    world = make_world()
    request = world.request(heavy())
    approve(site=live_server.url, username="ben", password="a long password", review=request.pk, comment="Read it.")
    decision = Decision.objects.get()
    assert (decision.user, decision.kind, decision.kernel_digest) == (world.ben, "approve", request.kernel_id)
    assert decision.session_hash and decision.comment == "Read it."
    request.refresh_from_db()
    assert request.state == "open"  # one of two


@pytest.mark.parametrize(("username", "password", "words"), [
    ("ada", "a long password", "no such form"),  # started the campaign
    ("vic", "a long password", "no such form"),  # a viewer
    ("ben", "wrong", "403"),
    ("sam", "a long password", "404"),  # another team's
])
def test_who_may_not_is_refused_by_the_page(
    live_server: LiveServer, transactional_db: None, username: str, password: str, words: str
) -> None:
    world = make_world()
    request = world.request(heavy())
    with pytest.raises(Refusal, match=words):
        approve(site=live_server.url, username=username, password=password, review=request.pk, comment="")
    assert not Decision.objects.exists()


def test_forms_are_read_with_their_hidden_fields_buttons_and_boxes() -> None:
    forms = Forms()
    forms.feed('<input type="hidden" name="outside" value="1">'
               '<form action="/a/"><input type="hidden" name="t" value="x">'
               '<input type="checkbox" name="ticked" value="1x128"><button name="kind" value="approve">A</button>'
               '</form><button name="kind" value="stray">B</button>')
    assert len(forms.found) == 1
    form = forms.found[0]
    assert (form.action, form.hidden, form.boxes) == ("/a/", {"t": "x"}, [("ticked", "1x128")])
    assert form.buttons == {("kind", "approve")}


def test_shipped_reports_are_imported_once_and_a_bad_one_is_left_out(
    transactional_db: None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    good = report("softmax")
    bad = report("softmax")
    bad["figures"][0]["measured"] = 99.0
    for name, data in (("a.json", as_file(bad)), ("b.json", as_file(good)), ("peers.json", b'{"rows": []}'),
                       ("broken.json", b"{")):
        (tmp_path / name).write_bytes(data)
    (tmp_path / "trust.jsonl").write_text("{}\n")
    assert [path.name for path in committed(tmp_path)] == ["a.json", "b.json"]
    for _ in range(2):
        errand = ReportsErrand(tmp_path)
        errand()
        errand()  # a second look starts nothing
        assert errand.thread is not None
        errand.thread.join(60)
        assert not errand.thread.is_alive()
    assert [row.file for row in ImportedReport.objects.all()] == ["b.json"]
    assert "a.json was not imported" in caplog.text
