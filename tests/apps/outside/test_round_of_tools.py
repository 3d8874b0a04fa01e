"""The tools of an outside agent: who may call them, what counts as having read the log, what is handed in."""

from __future__ import annotations

import pytest
from django.utils import timezone

from apps.bridge.mcp.models import Asking
from apps.campaigns.models import Campaign, EngineResult, Influence
from apps.campaigns.services import campaign_resume, hypotheses_edit
from apps.teams.models import RoleGrant
from apps.teams.services import token_revoke
from harness.domain.proposal import Candidate, Proposal
from tests.apps.outside.conftest import Scene, ideas, join, kernel, measured_baseline
from tests.crash.campaigns import begin_campaign

pytestmark = pytest.mark.django_db
ANSWERS = ("state_hypotheses", "submit_candidate", "give_up")


def told(scene: Scene) -> list[str]:
    """Kinds of the campaign's results."""
    return list(EngineResult.objects.filter(campaign=scene.campaign).order_by("seq").values_list("kind", flat=True))


def test_a_round_from_the_log_to_the_hand_in(scene: Scene) -> None:
    listed = scene.call("list_campaigns").data
    assert listed is not None and [row["campaign"] for row in listed["campaigns"]] == [scene.campaign.pk]
    standing = scene.call("wait_for_verdict", seconds=0)
    assert standing.data is not None and standing.data["your_turn"] and standing.data["asked_for"] == "diagnosis"
    assert standing.data["last_round"] is None and standing.mark is None
    brief = scene.call("read_brief")
    assert "diagnosis" in brief.text and "fastmath" in brief.text
    assert scene.call("state_hypotheses", hypotheses=ideas()).is_error, "the brief is no query of the log"
    assert not scene.call("query_log", direction=None).is_error
    assert not scene.call("state_hypotheses", hypotheses=ideas()).is_error
    assert told(scene) == ["BaselineMeasured"], "stating is no answer yet"
    handed = scene.call("submit_candidate", **kernel())
    assert not handed.is_error and "round 1" in handed.text
    result = EngineResult.objects.filter(campaign=scene.campaign).last()
    assert result is not None and result.kind == "Proposed" and result.document["data"]["queried_log"]
    row = scene.campaign.rounds.get(number=1)
    assert row.state == "evaluating" and row.change_summary == "Wider blocks."
    assert [call["tool"] for call in row.trace["calls"]] == [
        "state_hypotheses", "query_log", "state_hypotheses", "submit_candidate"]
    after = scene.call("wait_for_verdict", seconds=0)
    assert after.mark is not None and after.data is not None and after.data["waits_for"] == "evaluator"
    assert scene.call("read_brief").is_error
    again = scene.call("submit_candidate", **kernel(16))
    assert again.is_error and again.data is not None and again.data["code"] == "not_your_turn"


@pytest.mark.parametrize("order", [["state_hypotheses"], ["submit_candidate"], ["give_up"],
                                   ["read_source", "read_profile", "submit_candidate"]])
def test_nothing_is_handed_in_before_this_server_saw_a_query_of_the_log(scene: Scene, order: list[str]) -> None:
    arguments = {"state_hypotheses": {"hypotheses": ideas()}, "submit_candidate": kernel(),
                 "give_up": {"reason": "No idea is left that is worth a round."},
                 "read_source": {"which": "incumbent", "round": None}, "read_profile": {"shape": None}}
    replies = [scene.call(name, **arguments[name]) for name in order]
    assert replies[-1].is_error and "query_log" in replies[-1].text
    assert told(scene) == ["BaselineMeasured"]
    assert not Asking.objects.filter(log_queries__gt=0).exists()


def test_a_query_that_was_refused_or_came_with_a_reading_token_is_no_evidence(scene: Scene) -> None:
    assert scene.call("query_log", direction=7).is_error
    assert not scene.call("query_log", secret=scene.reading, direction=None).is_error
    assert scene.call("state_hypotheses", hypotheses=ideas()).is_error


def test_the_evidence_outlives_the_process_and_belongs_to_one_asking(scene: Scene) -> None:
    scene.call("query_log", direction=None)
    scene.call("state_hypotheses", hypotheses=ideas())
    row = Asking.objects.get()
    assert (row.round, row.attempt, row.log_queries) == (1, 1, 1) and row.log_queried_at is not None
    assert [idea["id"] for idea in row.stated] == ["h1", "h2", "h3"]
    Asking.objects.update(answers_before=5)  # as if it had been noted for another asking: nothing of it counts here
    refused = scene.call("submit_candidate", **kernel())
    assert refused.is_error and "query_log" in refused.text


def test_tokens_without_the_scope_read_and_nothing_else(scene: Scene) -> None:
    assert not scene.call("read_source", secret=scene.reading, which="baseline", round=None).is_error
    for name in ANSWERS:
        reply = scene.call(name, secret=scene.reading)
        assert reply.is_error and reply.data is not None and reply.data["code"] == "not_permitted", name
    assert not Asking.objects.exists()


def test_another_teams_campaign_and_an_absent_one_are_the_same(scene: Scene) -> None:
    from apps.bridge.mcp.tools import offered

    assert scene.call("list_campaigns", secret=scene.foreign).data == {"campaigns": []}
    arguments = {"wait_for_verdict": {"seconds": 0}}
    for name in set(offered()) - {"list_campaigns"}:
        mine = scene.call(name, secret=scene.foreign, **arguments.get(name, {}))
        absent = scene.call(name, secret=scene.foreign, campaign=987654, **arguments.get(name, {}))
        assert mine == absent and mine.is_error and mine.data is not None and mine.data["code"] == "not_found", name


def test_a_revoked_token_and_an_account_that_left_lose_it_in_the_middle(scene: Scene) -> None:
    from apps.bridge.mcp import tools

    caller = scene.caller()
    RoleGrant.objects.filter(membership__user=scene.robot).update(revoked_at=timezone.now())
    left = tools.call(caller, "wait_for_verdict", {"campaign": scene.campaign.pk, "seconds": 0})
    assert left.is_error and left.data is not None and left.data["code"] == "not_found"
    assert caller.token is not None
    token_revoke(token=caller.token, by=scene.maintainer)
    revoked = tools.call(caller, "list_campaigns", {})
    assert revoked.is_error and revoked.data is not None and revoked.data["code"] == "signed_out"


def test_an_account_with_a_lesser_role_answers_nothing(scene: Scene) -> None:
    RoleGrant.objects.filter(membership__user=scene.robot).update(revoked_at=timezone.now())
    join(scene.robot, scene.campaign.team, "viewer")
    reply = scene.call("give_up", reason="No idea is left that is worth a round.")
    assert reply.is_error and reply.data is not None and reply.data["code"] == "not_permitted"


def test_campaigns_of_other_agents_are_not_driven_from_outside(scene: Scene) -> None:
    type(scene.campaign).objects.filter(pk=scene.campaign.pk).update(agent_kind="playbook")
    reply = scene.call("query_log", direction=None)
    assert reply.is_error and "playbook" in reply.text and scene.call("list_campaigns").data == {"campaigns": []}


@pytest.mark.parametrize("number", [None, True, "1", 1.5, 0, -1, 2**63, [1], {"pk": 1}])
def test_a_campaign_is_named_by_a_number_and_nothing_else(scene: Scene, number: object) -> None:
    for name, more in (("query_log", {"direction": None}), ("wait_for_verdict", {"seconds": 0})):
        assert scene.call(name, campaign=number, **more).is_error


def test_whoever_holds_or_made_the_token_had_a_hand_in_the_kernel(scene: Scene) -> None:
    scene.call("query_log", direction=None)
    scene.call("state_hypotheses", hypotheses=ideas())
    scene.call("submit_candidate", **kernel())
    people = set(Influence.objects.filter(campaign=scene.campaign).values_list("user__username", flat=True))
    assert people == {"robot", "mona"}
    proposed = scene.campaign.rounds.get(number=1).kernel
    kinds = set(proposed.contributions.values_list("user__username", "kind"))
    assert {("emma", "started"), ("robot", "started"), ("mona", "started")} <= kinds


def test_an_answer_to_an_earlier_asking_is_not_taken_for_the_present_one(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    from apps.bridge.mcp import bench

    scene.call("query_log", direction=None)
    scene.call("state_hypotheses", hypotheses=ideas())
    real = bench.hand_in

    def slow(*arguments: object, **named: object) -> object:
        monkeypatch.setattr(bench, "hand_in", real)
        scene.call("submit_candidate", **kernel(16))  # a second client of the same token is quicker
        return real(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(bench, "hand_in", slow)
    late = scene.call("submit_candidate", **kernel())
    assert late.is_error and late.data is not None and late.data["code"] == "moved_on"
    assert told(scene).count("Proposed") == 1


def test_no_tool_decides_anything(scene: Scene) -> None:
    from apps.bridge.mcp.tools import offered

    words = ("approve", "promot", "reject", "veto", "steer", "role", "grant_", "resume", "pause", "stop", "choose")
    assert not [name for name in offered() if any(word in name for word in words)]
    assert [name for name, offer in offered().items() if not offer.reads] == [*ANSWERS]


def test_a_pause_after_the_diagnosis_begins_a_new_asking_that_knows_what_a_person_struck(scene: Scene) -> None:
    campaign = begin_campaign(scene.engineer, rounds=4, agent="mcp", pause_after_diagnosis=True)
    measured_baseline(campaign)
    here = {"campaign": campaign.pk}
    scene.call("query_log", **here, direction=None)
    assert not scene.call("state_hypotheses", **here, hypotheses=ideas()).is_error
    standing = scene.call("wait_for_verdict", **here, seconds=0).data
    assert standing is not None and (standing["waits_for"], standing["state"]) == ("person", "paused")
    kept = [idea for idea in ideas() if idea["id"] != "h2"]
    hypotheses_edit(campaign=campaign, person=scene.engineer, hypotheses=kept)
    campaign_resume(campaign=campaign, person=scene.engineer)
    unread = scene.call("submit_candidate", **here, **kernel())
    assert unread.is_error and "query_log" in unread.text, "the log is read once more in a new asking"
    scene.call("query_log", **here, direction=None)
    struck = scene.call("submit_candidate", **here, **{**kernel(), "hypothesis": "h2"})
    assert struck.is_error and "struck" in struck.text
    assert not scene.call("submit_candidate", **here, **kernel()).is_error
    assert campaign.rounds.get(number=1).state == "evaluating"


def test_an_answer_that_the_engine_sends_back_says_why_and_asks_for_the_log_again(scene: Scene) -> None:
    from apps.bridge.mcp import bench

    for attempt in (1, 2, 3):
        standing = scene.call("wait_for_verdict", seconds=0).data
        assert standing is not None and len(standing["sent_back"]) == attempt - 1
        asked = bench.standing_of(Campaign.objects.get(pk=scene.campaign.pk)).asked
        assert asked is not None
        proposal = Proposal("candidate", True, (), Candidate("h9", str(kernel()["source"]), "x"))
        reply = bench.hand_in(scene.caller(), scene.campaign, asked, proposal, queried_log=attempt > 1, said="Done.")
        assert reply.is_error and "Sent back" in reply.text
        assert reply.data is not None and reply.data["code"] == ("log_not_queried" if attempt == 1
                                                                 else "hypotheses_invalid")
        assert ("round 1 is over" in reply.text) == (attempt == 3)
        assert scene.call("state_hypotheses", hypotheses=ideas()).is_error
    standing = scene.call("wait_for_verdict", seconds=0).data
    assert standing is not None and standing["round"] == 2 and standing["last_round"]["conclusion"] == "failed"


def test_giving_up_leaves_the_choice_to_a_person(scene: Scene) -> None:
    scene.call("query_log", direction=None)
    reply = scene.call("give_up", reason="No idea is left that is worth a round.")
    assert not reply.is_error and "a person chooses" in reply.text
    assert scene.campaign.rounds.get(number=1).state == "cancelled"
