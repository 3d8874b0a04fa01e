"""Deciding in the browser: what is posted, what is refused, and what the page says about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.test import Client
from gate_world import ENVIRONMENT, World, medium

from apps.bridge import api
from apps.campaigns.jobs.workers import selftest_record
from apps.reviews.models import ReviewRequest, Thread
from apps.reviews.selectors import approvals_of

PASSWORD = "a long password"


def post(client: Client, request: ReviewRequest, **changes: Any) -> Any:
    """What the decision bar sends."""
    request.refresh_from_db()
    data = {"kind": "approve", "digest": request.kernel_id, "version": request.version, "comment": ""}
    return client.post(f"/reviews/{request.pk}/decide/", {**data, **changes})


def test_a_fresh_reviewer_approves(world: World, request_row: ReviewRequest, sign_in: Callable[..., Client]) -> None:
    answer = post(sign_in(world.ben), request_row)
    assert answer.status_code == 303
    decision = request_row.decisions.get(user=world.ben)
    assert (decision.kind, decision.kernel_digest) == ("approve", request_row.kernel_id)
    assert len(decision.session_hash) == 64


def test_without_a_fresh_proof_nothing_is_recorded_and_the_text_is_kept(
    world: World, request_row: ReviewRequest, sign_in: Callable[..., Client]
) -> None:
    client = sign_in(world.ben, fresh=False)
    page = client.get(f"/reviews/{request_row.pk}/").content.decode()
    assert 'name="password"' in page
    answer = post(client, request_row, kind="reject", comment="the tail is wrong")
    text = answer.content.decode()
    assert answer.status_code == 403
    assert "Not recorded." in text and "the tail is wrong" in text
    assert not request_row.decisions.filter(user=world.ben).exists()
    assert post(client, request_row, kind="approve", password="wrong").status_code == 403
    assert post(client, request_row, kind="approve", password=PASSWORD).status_code == 303


def test_a_decision_on_what_was_not_shown_is_refused(
    world: World, request_row: ReviewRequest, sign_in: Callable[..., Client]
) -> None:
    client = sign_in(world.ben)
    answer = post(client, request_row, version=request_row.version + 1, comment="kept words")
    assert answer.status_code == 409
    assert b"moved since you opened it" in answer.content and b"kept words" in answer.content
    assert post(client, request_row, digest="sha256:" + "0" * 64).status_code == 409
    assert post(client, request_row, version="").status_code == 409
    assert not request_row.decisions.filter(user=world.ben).exists()


def test_a_contributor_sees_why_every_button_is_off(
    world: World, request_row: ReviewRequest, sign_in: Callable[..., Client]
) -> None:
    other = world.new_campaign(world.dia)
    request = other.request(medium("8"), person=world.dia)
    text = sign_in(world.dia).get(f"/reviews/{request.pk}/").content.decode()
    assert "You may not decide here:" in text and "you are a contributor" in text
    assert 'value="approve"' not in text
    assert text.count('aria-disabled="true" aria-describedby="why-not"') == 4
    answer = post(sign_in(world.dia), request)
    assert answer.status_code == 403
    assert b"you are a contributor" in answer.content


def test_get_and_missing_token_change_nothing(
    world: World, request_row: ReviewRequest, sign_in: Callable[..., Client]
) -> None:
    assert sign_in(world.ben).get(f"/reviews/{request_row.pk}/decide/").status_code == 405
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(world.ben)
    assert strict.post(f"/reviews/{request_row.pk}/decide/", {"kind": "approve"}).status_code == 403
    assert not request_row.decisions.filter(user=world.ben).exists()


def test_comments_need_no_proof_and_what_people_write_is_escaped(
    world: World, request_row: ReviewRequest, sign_in: Callable[..., Client]
) -> None:
    client = sign_in(world.vic, fresh=False)
    evil = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    assert post(client, request_row, kind="comment", comment=evil).status_code == 303
    line = client.post(f"/reviews/{request_row.pk}/comment/", {"text": evil, "line": "21", "side": "new"})
    assert line.status_code == 303
    text = client.get(f"/reviews/{request_row.pk}/").content.decode()
    assert "<script>alert" not in text and "<img src=x" not in text
    assert text.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 2
    assert Thread.objects.filter(request=request_row, line=21).exists()


def test_what_a_model_writes_is_escaped(world: World, sign_in: Callable[..., Client]) -> None:
    evil = "</script><script>alert(1)</script>"
    row = world.campaign.rounds.get(number=1)
    row.change_summary = row.hypothesis = row.cause = evil
    row.trace = {"turns": [evil]}
    row.entry = {**(row.entry or {}), "agent_claim": {"gain": 0.5, "text": evil}}
    row.save()
    world.campaign.hypotheses.update(text=evil, evidence=evil)
    client = sign_in(world.vic)
    for address in (f"/campaigns/{world.campaign.pk}/", f"/campaigns/{world.campaign.pk}/rounds/1/", "/"):
        text = client.get(address).content.decode()
        assert "<script>alert" not in text, address


def test_the_gate_speaks_in_sentences(world: World, request_row: ReviewRequest, sign_in: Callable[..., Client]) -> None:
    text = sign_in(world.ben).get(f"/reviews/{request_row.pk}/").content.decode()
    assert "Your turn." in text and "1 of 2 approvals, by Cem" in text
    text = sign_in(world.cem).get(f"/reviews/{request_row.pk}/").content.decode()
    assert "Not your turn." in text and "Waits for Ben, Dia" in text


def test_withdrawing_and_raising_go_through_the_services(
    world: World, request_row: ReviewRequest, sign_in: Callable[..., Client]
) -> None:
    other = world.new_campaign()
    request = other.request(medium("8"))
    assert (
        sign_in(world.ben).post(f"/reviews/{request.pk}/raise/", {"tier": "heavy", "reason": "risky"}).status_code
        == 303
    )
    request.refresh_from_db()
    assert request.raised_tier == "heavy"
    sign_in(world.vic).post(f"/reviews/{request.pk}/withdraw/", {"reason": "no"})
    request.refresh_from_db()
    assert request.state == "open"
    sign_in(world.ada).post(f"/reviews/{request.pk}/withdraw/", {"reason": "a better one comes"})
    request.refresh_from_db()
    assert request.state == "withdrawn"


def test_to_who_approved_already_no_decision_looks_open(
    world: World, request_row: ReviewRequest, sign_in: Callable[..., Client]
) -> None:
    mine = sign_in(world.cem).get(f"/reviews/{request_row.pk}/").content.decode()
    assert "Approved by you" in mine and 'value="approve"' not in mine and "You approved it" in mine
    assert 'class="btn quiet" type="submit" name="kind" value="reject"' in mine  # minds may change
    assert 'value="approve"' in sign_in(world.ben).get(f"/reviews/{request_row.pk}/").content.decode()
    world.decide(request_row, world.cem, "approve")  # said twice it counts once
    assert len(approvals_of(request_row)) == 1


def test_after_the_last_approval_the_page_names_what_is_waited_for(
    world: World, request_row: ReviewRequest, sign_in: Callable[..., Client]
) -> None:
    def tested(passed: bool) -> None:
        selftest_record(evaluator_version=api.evaluator_version(), environment_class=ENVIRONMENT, isolation=3,
                        backend="numba", quick=True, passed=passed, report={})

    tested(False)
    post(sign_in(world.ben), request_row)
    request_row.refresh_from_db()
    assert request_row.state == "approved"
    text = sign_in(world.ben).get(f"/reviews/{request_row.pk}/").content.decode()
    assert "The verification is not ordered yet. The evaluator&#x27;s self-test failed" in text
    tested(True)
    assert "is ordered in a moment" in sign_in(world.ben).get(f"/reviews/{request_row.pk}/").content.decode()
