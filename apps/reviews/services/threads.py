"""Talking: threads, replies, viewed marks, spot checks; and the team's gate policy."""

from __future__ import annotations

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from apps.audit.services import audit_record
from apps.bridge import api
from apps.campaigns.choices import CAMPAIGN_ENDED
from apps.campaigns.models import Campaign, Round
from apps.campaigns.services import influence_add, tell
from apps.core.errors import Invalid, Refused
from apps.core.transitions import transition
from apps.kernels.models import Kernel
from apps.reviews import policies
from apps.reviews.choices import SPOT_CHECK_MACHINE, SpotCheckState
from apps.reviews.models import Comment, ReviewRequest, SpotCheck, Thread, ViewedMark
from apps.stream.services import recording
from apps.teams import policies as team_policies
from apps.teams.models import Team, User


def thread_open(
    *, request: ReviewRequest, person: User, text: str, kernel: Kernel | None = None, line: int | None = None,
    blocking: bool = False,
) -> Thread:
    """Open a discussion, pinned to a line of one side or about the whole request. Only reviewers may make it blocking.

    Raises:
        Refused, Invalid: with the sentence.
    """
    allowed = team_policies.may_review if blocking else team_policies.may_comment
    why = allowed(person, request.team)
    if why:
        raise Refused(why)
    _said(text)
    if kernel is not None and kernel.pk not in (request.kernel_id, request.base_id):
        raise Invalid("The line belongs to neither side of this request.", key="kernel")
    if line is not None and (kernel is None or not 1 <= line <= kernel.text.count("\n") + 1):
        raise Invalid(f"Line {line} does not exist on that side.", key="line")
    with transaction.atomic():
        thread = Thread.objects.create(request=request, kernel=kernel, line=line, blocking=blocking, opened_by=person,
                                       opened_at=timezone.now())
        Comment.objects.create(thread=thread, author=person, text=text.strip(), at=thread.opened_at)
    return thread


def thread_reply(*, thread: Thread, person: User, text: str) -> Comment:
    """Add a remark."""
    why = team_policies.may_comment(person, thread.request.team)
    if why:
        raise Refused(why)
    _said(text)
    return Comment.objects.create(thread=thread, author=person, text=text.strip(), at=timezone.now())


def thread_resolve(*, thread: Thread, person: User) -> Thread:
    """Mark a discussion as done: who opened it, or a maintainer."""
    why = policies.may_resolve(person, thread.opened_by, thread.request.team)
    if why:
        raise Refused(why)
    with transaction.atomic():
        Thread.objects.filter(pk=thread.pk, resolved_at__isnull=True).update(
            resolved_by=person, resolved_at=timezone.now()
        )
        audit_record(verb="thread.resolved", subject=thread, actor=person, team=thread.request.team)
    thread.refresh_from_db()
    return thread


def _said(text: str) -> None:
    if not text.strip():
        raise Invalid("Write something first.", key="text")


def viewed_mark(*, request: ReviewRequest, person: User, item: str) -> ViewedMark:
    """Note that a reviewer has seen a tab or hunk; from then on the request is not replaced by a better candidate."""
    why = team_policies.may_comment(person, request.team)
    if why:
        raise Refused(why)
    mark, _ = ViewedMark.objects.get_or_create(
        request=request, user=person, item=item[:100], defaults={"at": timezone.now()}
    )
    return mark


def spot_check_ask(*, campaign: Campaign, round_number: int, fence: int | None = None) -> SpotCheck:
    """Ask reviewers to look at a round (R17), and tell the engine that it was asked. An unanswered one lapses."""
    with recording(campaign.stream, campaign.team.stream) as log:
        row = Round.objects.get(campaign=campaign, number=round_number)
        for old in SpotCheck.objects.filter(campaign=campaign, state=SpotCheckState.ASKED):
            transition(old, SPOT_CHECK_MACHINE, SpotCheckState.LAPSED)
        check = SpotCheck.objects.create(campaign=campaign, round=row, asked_at=timezone.now())
        for stream in (campaign.stream, campaign.team.stream):
            log.append(stream, "spotcheck.asked", {"campaign": campaign.pk, "round": round_number, "check": check.pk})
        tell(campaign, api.engine_result("SpotCheckAsked", round=round_number), log, fence=fence)
    return check


def spot_check_answer(*, check: SpotCheck, person: User, comment: str = "", concern: bool = False) -> SpotCheck:
    """A reviewer looked. The comment reaches the agent; a concern without one is refused.

    Raises:
        Refused: no reviewer. Invalid: a concern needs words. ImpossibleTransition: answered or lapsed already.
    """
    campaign = check.campaign
    why = team_policies.may_review(person, campaign.team)
    if why:
        raise Refused(why)
    if concern and not comment.strip():
        raise Invalid("Say what the concern is; the agent reads it.", key="comment")
    with recording(campaign.stream, campaign.team.stream) as log:
        transition(check, SPOT_CHECK_MACHINE, SpotCheckState.ANSWERED, answered_by=person, concern=concern,
                   answered_at=timezone.now(), comment=comment.strip())
        for stream in (campaign.stream, campaign.team.stream):
            log.append(stream, "spotcheck.answered", {"campaign": campaign.pk, "round": check.round.number,
                                                      "by": person.name, "concern": concern})
        if comment.strip():
            influence_add(campaign=campaign, user=person, source=f"spot check of round {check.round.number}")
        campaign.refresh_from_db()
        if campaign.state not in CAMPAIGN_ENDED:
            tell(campaign, api.engine_result("SpotCheckAnswered", round=check.round.number, person=person.name,
                                             feedback=comment.strip()), log)
        audit_record(verb="spotcheck.answered", subject=check, actor=person, team=campaign.team, reason=comment,
                     data={"concern": concern})
    return check


def policy_set(
    *, team: Team, person: User, light_auto_promote: bool | None = None, approvals_light: int | None = None,
    approvals_medium: int | None = None, approvals_heavy: int | None = None,
) -> Team:
    """Change the team's gate policy. It may only raise the floors; open requests go stale and approve nothing anew.

    Raises:
        Refused: no maintainer. Invalid: below a floor; ``key`` names the number.
    """
    why = team_policies.may_manage(person, team)
    if why:
        raise Refused(why)
    given = {"approvals_light": approvals_light, "approvals_medium": approvals_medium,
             "approvals_heavy": approvals_heavy}
    changes: dict[str, object] = {}
    for key, value in given.items():
        floor = policies.FLOORS[key.removeprefix("approvals_")]
        if value is not None and value < floor:
            raise Invalid(f"{key.replace('_', ' ')} is at least {floor}: floors can be raised, never lowered.", key=key)
        if value is not None and value != getattr(team, key):
            changes[key] = value
    if light_auto_promote is not None and light_auto_promote != team.light_auto_promote:
        changes["light_auto_promote"] = light_auto_promote
    if not changes:
        return team
    with transaction.atomic():
        Team.objects.filter(pk=team.pk).update(policy_version=F("policy_version") + 1, **changes)
        team.refresh_from_db()
        audit_record(verb="policy.changed", subject=team, actor=person, team=team, after=f"v{team.policy_version}",
                     data=changes)
    return team
