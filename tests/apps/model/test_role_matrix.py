"""CONTRACTS section 2, row by row: who may do what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.test import Client, override_settings
from django.utils import timezone
from gate_world import World, goal, light, medium

from apps.audit.selectors import entries_for
from apps.campaigns.canary.models import CanaryBase
from apps.campaigns.canary.services import canary_rebase
from apps.campaigns.jobs.selftest_orders import selftest_order
from apps.campaigns.jobs.workers import worker_beat, worker_drain
from apps.campaigns.selectors import campaign_for
from apps.campaigns.services import campaign_create, campaign_pause, campaign_stop
from apps.core.errors import AppError, NotFound, Refused
from apps.kernels.selectors import kernel_for, verdict_for
from apps.kernels.services import baseline_kernel
from apps.leaderboards.selectors import board, boards
from apps.reviews.models import Veto
from apps.reviews.selectors import request_for
from apps.reviews.services import policy_set, rollback_start, thread_open, veto_lift
from apps.teams import policies
from apps.teams.services import boards_sharing_set, role_grant, role_revoke, token_create, user_create

EVERYBODY = ("anonymous", "vic", "ada", "ben", "maintainer", "admin", "robot", "stranger")


def person(world: World, who: str) -> Any:
    return AnonymousUser() if who == "anonymous" else getattr(world, who)


def allowed(action: Callable[[], Any]) -> bool:
    try:
        action()
    except (Refused, NotFound):
        return False
    return True


def who_may(world: World, action: Callable[[Any], Any], among: tuple[str, ...] = EVERYBODY) -> set[str]:
    return {who for who in among if allowed(lambda who=who: action(person(world, who)))}


BOARD = {"operator": "rms_norm", "backend": "numba", "hardware": "cpu-test-model-1t", "workload": "llm"}


def test_boards_are_for_everybody_signed_in_and_for_all_when_public(world: World) -> None:
    signed_in = set(EVERYBODY) - {"anonymous"}
    assert who_may(world, lambda user: board(user, **BOARD)) == signed_in
    with override_settings(PUBLIC_BOARDS=True):
        assert who_may(world, boards) == set(EVERYBODY)


def test_rows_of_other_teams_show_figures_and_no_identifiers_unless_they_opted_out(world: World) -> None:
    request = world.request(medium())
    mine = board(world.ada, **BOARD).rows
    theirs = board(world.stranger, **BOARD).rows
    assert [row.label for row in mine] == [row.label for row in theirs]
    assert any(row.kernel == request.kernel_id for row in mine)
    assert all((row.kernel, row.verdict, row.campaign) == (None, None, None) for row in theirs)
    boards_sharing_set(team=world.team, shared=False, by=world.maintainer)
    assert board(world.stranger, **BOARD).rows == ()
    assert board(world.ada, **BOARD).rows == mine


def test_campaigns_kernels_verdicts_and_requests_are_seen_by_the_own_team_and_admins(world: World) -> None:
    request = world.request(medium())
    members = {"vic", "ada", "ben", "maintainer", "admin", "robot"}
    for look in (
        lambda user: campaign_for(user, world.campaign.pk), lambda user: kernel_for(user, request.kernel_id),
        lambda user: verdict_for(user, request.verdict_id), lambda user: request_for(user, request.pk),
    ):
        assert who_may(world, look) == members
    with pytest.raises(NotFound):
        campaign_for(world.stranger, world.campaign.pk)


def test_campaigns_are_run_by_engineers_reviewers_and_maintainers(world: World) -> None:
    create = lambda user: campaign_create(team=world.team, person=user, goal=goal())  # noqa: E731
    assert who_may(world, create) == {"ada", "ben", "maintainer"}
    assert who_may(world, lambda user: campaign_pause(campaign=world.campaign, person=user), ("vic", "admin")) == set()
    assert who_may(world, lambda user: campaign_stop(campaign=world.campaign, person=user), ("robot", "ben")) == {"ben"}


def test_comments_are_for_members(world: World) -> None:
    request = world.request(medium())
    say = lambda user: thread_open(request=request, person=user, text="Hm.")  # noqa: E731
    assert who_may(world, say) == {"vic", "ada", "ben", "maintainer"}


@pytest.mark.parametrize("kind", ["approve", "request_changes", "reject", "veto"])
def test_decisions_are_for_reviewers_who_are_no_contributors(world: World, kind: str) -> None:
    request = world.request(medium())
    among = (*(who for who in EVERYBODY if who != "ben"), "ben")  # ben last: a decision may end the request
    assert who_may(world, lambda user: world.decide(request, user, kind), among) == {"ben"}


def test_maintainer_and_admin_decide_with_the_reviewer_role_too(world: World) -> None:
    for who in ("maintainer", "admin"):
        role_grant(team=world.team, user=getattr(world, who), role="reviewer", by=world.maintainer)
    request = world.request(medium())
    assert who_may(world, lambda user: world.decide(request, user), ("maintainer", "admin")) == {"maintainer", "admin"}


def test_veto_is_lifted_by_its_author_or_by_a_maintainer_once_the_author_is_gone(world: World) -> None:
    request = world.request(medium())
    world.decide(request, world.ben, "veto")
    veto = Veto.objects.get()
    lift = lambda user: veto_lift(veto=veto, person=user, reason="measured again")  # noqa: E731
    others = tuple(who for who in (*EVERYBODY, "cem") if who != "ben")
    assert who_may(world, lift, others) == set()
    role_revoke(team=world.team, user=world.ben, role="reviewer", by=world.maintainer)
    assert who_may(world, lift, ("anonymous", "vic", "ada", "cem", "ben", "admin", "robot", "stranger")) == set()
    assert who_may(world, lift, ("maintainer",)) == {"maintainer"}


def test_author_lifts_own_veto_and_nothing_is_approved_by_it(world: World) -> None:
    request = world.request(medium())
    world.decide(request, world.ben, "veto")
    with pytest.raises(Refused, match="vetoed this kernel"):
        world.request(medium())
    renamed = medium().replace(b"spare = 3", b"other = 3")
    with pytest.raises(Refused, match="vetoed this kernel"):
        world.request(renamed)
    veto_lift(veto=Veto.objects.get(), person=world.ben, reason="measured again")
    again = world.request(medium("3"))
    assert again.state == "open"
    assert not again.decisions.exists()


def test_rollback_is_for_reviewers(world: World) -> None:
    first = world.promote(medium("1"), world.ben)
    world.new_campaign().promote(medium("2"), world.ben)
    world.campaign.slot.refresh_from_db()
    back = lambda user: rollback_start(  # noqa: E731
        slot=world.campaign.slot, promotion=first.promotion, person=user, reason="regressed in serving",
        reauthenticated_at=timezone.now())
    assert who_may(world, back, (*(w for w in EVERYBODY if w != "ben"), "ben")) == {"ben"}


def test_policy_members_roles_and_tokens_are_for_maintainers_and_admins(world: World) -> None:
    new = user_create(username="new", password="a long password")
    for act in (
        lambda user: policy_set(team=world.team, person=user, approvals_heavy=3),
        lambda user: role_grant(team=world.team, user=new, role="viewer", by=user),
        lambda user: token_create(team=world.team, user=world.ada, name="t", by=user),
    ):
        assert who_may(world, act) == {"maintainer", "admin"}


def test_policy_never_goes_below_a_floor(world: World) -> None:
    for key, value in (("approvals_light", 0), ("approvals_medium", 0), ("approvals_heavy", 1)):
        with pytest.raises(AppError, match="never lowered"):
            policy_set(team=world.team, person=world.maintainer, **{key: value})


def test_operators_of_ones_own(world: World) -> None:
    propose = lambda user: policies.may_propose_operator(user, world.team)  # noqa: E731
    assert {who for who in EVERYBODY if propose(person(world, who)) is None} == {"ada", "maintainer"}
    activate = lambda user: policies.may_activate_operator(user, world.team, proposer=world.dia)  # noqa: E731
    assert {who for who in (*EVERYBODY, "dia") if activate(person(world, who)) is None} == {"ben"}


def test_audit_trail_is_for_reviewers_maintainers_and_admins(world: World) -> None:
    assert who_may(world, lambda user: entries_for(user, world.team)) == {"ben", "maintainer", "admin"}
    assert who_may(world, lambda user: entries_for(user)) == {"admin"}


def test_workers_are_operated_by_maintainers_and_admins(world: World) -> None:
    worker = worker_beat(name="evalworker:x", kind="evalworker")
    drain = lambda user: worker_drain(worker=worker, person=user, team=world.team)  # noqa: E731
    assert who_may(world, drain) == {"maintainer", "admin"}
    test = lambda user: selftest_order(worker=worker, quick=True, person=user, team=world.team)  # noqa: E731
    assert who_may(world, test) == {"maintainer", "admin"}


def test_a_new_reference_is_begun_by_maintainers_and_admins(world: World) -> None:
    operator = world.campaign.slot.operator
    CanaryBase.objects.create(
        operator=operator, backend="numba", hardware="x", workload="llm", begun_at=timezone.now(), reason="in use",
        kernel=baseline_kernel(operator=operator, backend="numba"))

    def begin(user: Any) -> None:
        canary_rebase(base=CanaryBase.objects.get(ended_at=None), person=user, team=world.team, reason="moved")

    assert who_may(world, begin) == {"maintainer", "admin"}


def test_last_maintainer_stays(world: World) -> None:
    with pytest.raises(Refused, match="last maintainer"):
        role_revoke(team=world.team, user=world.maintainer, role="maintainer", by=world.maintainer)


def test_api_reads_with_a_token_of_the_team_and_starts_campaigns_only_with_the_scope(world: World) -> None:
    _, reading = token_create(team=world.team, user=world.ada, name="r", by=world.maintainer)
    _, running = token_create(team=world.team, user=world.ada, name="w", by=world.maintainer, can_run_campaigns=True)
    client = Client()
    head = lambda secret: {"Authorization": f"Bearer {secret}"}  # noqa: E731
    assert client.get("/api/v1/campaigns").status_code == 401
    assert client.get("/api/v1/campaigns", headers=head("ko_wrong")).status_code == 401
    listed = client.get("/api/v1/campaigns", headers=head(reading)).json()["campaigns"]
    assert [row["id"] for row in listed] == [world.campaign.pk]
    body = {"team": "kernels", "goal": goal(), "name": "by script"}
    post = lambda secret, **extra: client.post(  # noqa: E731
        "/api/v1/campaigns", {**body, **extra}, content_type="application/json", headers=head(secret))
    assert post(reading).status_code == 403
    made = post(running)
    assert (made.status_code, made.json()["state"]) == (201, "running")
    wrong = post(running, goal={**goal(), "grant": "total"})
    assert (wrong.status_code, wrong.json()["code"]) == (422, "goal_invalid")
    assert post(running, team="others").status_code == 404
    one = client.get(f"/api/v1/campaigns/{world.campaign.pk}", headers=head(reading))
    assert one.json()["goal"]["operator"] == "rms_norm"


def test_champion_api_hands_out_only_what_stands(world: World) -> None:
    client = Client()
    client.force_login(world.vic)
    assert client.get("/api/v1/champions/rms_norm").status_code == 409
    request = world.promote(light(), world.ben)
    answer = client.get("/api/v1/champions/rms_norm").json()
    assert answer["digest"] == request.kernel_id
    assert answer["source"].encode() == light()
    assert [row["by"] for row in answer["approvals"]] == ["Ben"]
    assert answer["verdict"]["comparison"] == "faster"
    client.force_login(world.stranger)
    assert client.get("/api/v1/champions/rms_norm").status_code == 404
