"""The page of one verdict, and its samples as files."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta

from django.test import Client
from django.utils import timezone
from gate_world import HARDWARE, World, medium, verdict_document

from apps.bridge import api
from apps.campaigns.canary.models import CanaryBase, CanaryDrift
from apps.campaigns.jobs.services import job_complete, job_enqueue, job_lease
from apps.kernels.models import Verdict
from apps.kernels.services import baseline_kernel
from apps.reviews.gate import requirements
from apps.reviews.models import ReviewRequest
from apps.reviews.screens.review import TITLES

SignIn = Callable[..., Client]


def passed(world: World) -> Verdict:
    """The incumbent's verdict: passed, timed, with samples."""
    verdict = world.campaign.incumbent_verdict
    assert verdict is not None
    return verdict


def refused(world: World, **reason: object) -> Verdict:
    """A refused verdict with one reason as given."""
    job = world.job(world.kernel(medium("77")))
    leased = job_lease(hardware=HARDWARE, backends=["numba"])
    assert leased is not None and leased.pk == job.pk
    document, _ = verdict_document(leased, outcome="incorrect_numeric")
    document["stage"] = "correctness"
    document["reasons"] = [{"code": "tail_wrong", "stage": "correctness", "text": "The tail is wrong.", "line": 14,
                            "case": "cols=1021", "index": [3, 1020], "got": 0.0, "expected": 1.37, "bound": 2e-6,
                            **reason}]
    document["correctness"]["cases"][0] |= {"passed": False, "worst_ratio": 6.85e5}
    return job_complete(job_id=leased.pk, fence=leased.fence, document=document, samples=None)


def test_exports_are_the_samples_as_stored_and_as_a_table(world: World, sign_in: SignIn) -> None:
    verdict, client = passed(world), sign_in(world.vic)
    assert verdict.samples is not None
    answer = client.get(f"/verdicts/{verdict.pk}/samples.json")
    assert answer.content == bytes(verdict.samples.data) and "attachment" in answer["Content-Disposition"]
    assert "blob:" + api.digest(answer.content) == verdict.document["samples"]
    table = client.get(f"/verdicts/{verdict.pk}/samples.csv")
    assert table["Content-Type"].startswith("text/csv")
    pairs = sum(len(one["other"]) for shape in json.loads(answer.content)["shapes"]
                for rounds in [*shape["versus"].values(), shape["aa"]] for one in rounds)
    assert len(table.content.decode().splitlines()) == pairs + 1


def test_exports_are_seen_by_who_sees_the_verdict(world: World, sign_in: SignIn) -> None:
    for kind in ("json", "csv"):
        address = f"/verdicts/{passed(world).pk}/samples.{kind}"
        assert sign_in(world.stranger).get(address).status_code == 404
        assert sign_in(None).get(address).status_code == 302
        assert sign_in(world.admin).get(address).status_code == 200


def test_what_was_not_timed_has_no_samples_and_says_so(world: World, sign_in: SignIn) -> None:
    verdict, client = refused(world), sign_in(world.vic)
    assert client.get(f"/verdicts/{verdict.pk}/samples.json").status_code == 404
    text = client.get(f"/verdicts/{verdict.pk}/").content.decode()
    assert "not timed" in text and "samples.csv" not in text and "Stability" not in text


def test_a_failure_leads_to_its_case_and_line(world: World, sign_in: SignIn) -> None:
    verdict = refused(world)
    text = sign_in(world.vic).get(f"/verdicts/{verdict.pk}/").content.decode()
    fail, rest = text[text.index('id="fail-h"'):].split("</section>", 1)
    for words in ("The tail is wrong.", "left over after the last full block", "[3, 1020]", "1.37", "685000.0×",
                  'href="#case-1"', 'href="#L14"', "/docs/troubleshooting/tail_wrong/"):
        assert words in fail, words
    assert 'id="case-1" class="flagged"' in rest and 'id="L14" class="flagged"' in rest
    assert "refused here" in rest and 'id="timing-h"' in rest


def test_the_page_shows_cases_pairs_evidence_walls_and_stages(world: World, sign_in: SignIn) -> None:
    text = sign_in(world.vic).get(f"/verdicts/{passed(world).pk}/").content.decode()
    assert 'id="fail-h"' not in text
    for words in ("cols=1021", "honest 8.0e−7, ceiling 1.0e−4", "A/A control", 'class="pts"', "Held against the judge",
                  "another user", "<code>landlock</code>", "0.01", "samples.json", "cannot be told apart"):
        assert words in text, words
    assert text.count('<svg viewBox="0 0 440') == 2  # one plot per shape


def test_words_of_a_candidate_are_shown_and_not_run(world: World, sign_in: SignIn) -> None:
    evil = "<script>alert(1)</script>"
    verdict = refused(world, text=evil, got=evil, expected="<b>", case=evil, code="numeric_wrong")
    text = sign_in(world.vic).get(f"/verdicts/{verdict.pk}/").content.decode()
    assert evil not in text and "&lt;script&gt;alert(1)" in text and "<b>&lt;b&gt;" not in text.replace("\n", "")


def test_figures_of_a_drift_are_marked_on_page_plot_and_board(world: World, sign_in: SignIn) -> None:
    verdict, client = passed(world), sign_in(world.vic)
    pages = [f"/reviews/{ReviewRequest.objects.get().pk}/", f"/campaigns/{world.campaign.pk}/rounds/4/"]
    plots = [f"/campaigns/{world.campaign.pk}/", "/leaderboards/rms_norm/"]
    addresses = [f"/verdicts/{verdict.pk}/", *pages, *plots]
    for address in addresses:
        assert "device drifted" not in client.get(address).content.decode()
    operator = world.campaign.slot.operator
    base = CanaryBase.objects.create(
        operator=operator, backend="numba", hardware=HARDWARE, workload="llm", begun_at=timezone.now(), reason="x",
        kernel=baseline_kernel(operator=operator, backend="numba"))
    CanaryDrift.objects.create(
        base=base, hardware=HARDWARE, environment_class="x", since=timezone.now() - timedelta(hours=1), text="drifts",
        opened_at=timezone.now())
    for address in addresses:
        text = client.get(address).content.decode()
        assert "device drifted" in text, address
        assert address not in plots or "--stale-bg" in text


def test_a_canarys_reading_belongs_to_nobody_and_is_seen_by_everybody(world: World, sign_in: SignIn) -> None:
    kernel = baseline_kernel(operator=world.campaign.slot.operator, backend="numba")
    request = api.verification_request(
        job="00000000-0000-4000-8000-000000000001", goal=world.campaign.goal, operator_version="1",
        candidate=bytes(kernel.source), against={}, purpose="canary")
    job_enqueue(purpose="canary", request=request, team=None, kernel=kernel)
    leased = job_lease(hardware=HARDWARE, backends=["numba"])
    assert leased is not None
    document, samples = verdict_document(leased)
    document["comparison"], document["compared_with"], document["timing"]["overall"] = "none", None, {}
    verdict = job_complete(job_id=leased.pk, fence=leased.fence, document=document, samples=samples)
    for person in (world.stranger, world.vic):
        assert sign_in(person).get(f"/verdicts/{verdict.pk}/").status_code == 200
    assert sign_in(None).get(f"/verdicts/{verdict.pk}/").status_code == 302


def test_every_requirement_of_the_gate_has_a_title(request_row: ReviewRequest) -> None:
    assert {line.code for line in requirements(request_row)} == set(TITLES)
