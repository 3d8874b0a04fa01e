"""The team page: members with their roles, the gate policy, what I may do and why."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from apps.core.errors import AppError, Invalid, Refused
from apps.core.paging import SignedIn, act, number_in, page, show
from apps.reviews import services as reviews
from apps.teams import policies, selectors, services
from apps.teams.choices import Role
from apps.teams.models import ApiToken, Team, User

RIGHTS = (
    ("See campaigns, kernels, verdicts and events", policies.may_see),
    ("Create, start, pause, stop and fork campaigns", policies.may_run_campaigns),
    ("Comment on a review", policies.may_comment),
    ("Approve, request changes, reject, veto", policies.may_review),
    ("Roll a champion back", policies.may_roll_back),
    ("Change members, roles, policy and tokens", policies.may_manage),
    ("Read the audit trail", policies.may_see_audit),
    ("Requeue, drain, order a self-test", policies.may_operate),
)


def team_context(request: SignedIn, team: Team) -> dict[str, Any]:
    """Everything about one team; its tokens only for those who manage it."""
    why_not = policies.may_manage(request.user, team)
    return {
        "subject": team,
        "members": [{"user": user, "grants": grants} for user, grants in selectors.members_of(team)],
        "rights": [{"what": what, "why": policy(request.user, team)} for what, policy in RIGHTS],
        "may_manage": why_not,
        "all_roles": Role.values,
        "tokens": [] if why_not else ApiToken.objects.filter(team=team, revoked_at__isnull=True).select_related("user"),
    }


@page
def show_team(request: SignedIn, slug: str) -> HttpResponse:
    """The page."""
    return show(request, "teams/team.html", team_context(request, selectors.team_for(request.user, slug)))


@never_cache
@page
@require_POST
def make_token(request: SignedIn, slug: str) -> HttpResponse:
    """A token for scripts. Its secret is in this answer and nowhere else."""
    team = selectors.team_for(request.user, slug)
    secret, refusal = "", None
    try:
        managing(request, team)
        name = request.POST.get("name", "").strip()
        if not name:
            raise Invalid("A token needs a name that says what it is for.", key="name")
        user = person_named(team, request.POST.get("username", ""))
        _, secret = services.token_create(
            team=team,
            user=user,
            name=name,
            by=request.user,
            can_run_campaigns=bool(request.POST.get("can_run_campaigns")),
        )
    except AppError as error:
        refusal = error
    shown = {**team_context(request, team), "secret": secret, "token_refusal": refusal}
    return show(request, "teams/team.html", shown, status=refusal.status if refusal else 201)


@page
@require_POST
def revoke_token(request: SignedIn, slug: str) -> HttpResponse:
    """End a token at once."""
    key = request.POST.get("token", "")

    def revoke(team: Team) -> None:
        token = ApiToken.objects.filter(team=team, pk=number_in(key) or 0).first()
        if token is None:
            raise Invalid("There is no such token in this team.", key="token")
        services.token_revoke(token=token, by=request.user)

    return changing(request, slug, "The token no longer works.", revoke)


def person_named(team: Team, username: str) -> User:
    """An account by name.

    Raises:
        Invalid: there is none.
    """
    found = User.objects.filter(username=username.strip(), is_active=True).first()
    if found is None:
        raise Invalid(
            f"There is no active account named '{username.strip()}'. Check the name; an admin makes accounts.",
            key="username",
        )
    return found


def changing(request: SignedIn, slug: str, done: str, action: Any) -> HttpResponse:
    """Run ``action(team)`` and go back to the team page. Who may not manage learns nothing of what was named."""
    team = selectors.team_for(request.user, slug)

    def permitted() -> None:
        managing(request, team)
        action(team)

    return act(request, done, permitted, to=reverse("team", args=[slug]))


def managing(request: SignedIn, team: Team) -> None:
    """Ask before anything that was posted is looked up: whether an account exists is nobody else's business.

    Raises:
        Refused: the person may not manage the team.
    """
    why = policies.may_manage(request.user, team)
    if why:
        raise Refused(why)


@page
@require_POST
def add_member(request: SignedIn, slug: str) -> HttpResponse:
    """Put an account into the team with a set of roles."""
    name, roles = request.POST.get("username", ""), request.POST.getlist("roles")

    def add(team: Team) -> None:
        if not roles:
            raise Invalid("Choose at least one role; a member without one sees nothing.", key="roles")
        services.membership_add(team=team, user=person_named(team, name), roles=roles, by=request.user)

    return changing(request, slug, f"{name} is in the team. Reviewers were told.", add)


@page
@require_POST
def grant_role(request: SignedIn, slug: str) -> HttpResponse:
    """Give a member one more role."""
    name, role = request.POST.get("username", ""), request.POST.get("role", "")

    def grant(team: Team) -> None:
        if role not in Role.values:
            raise Invalid(f"'{role}' is no role. Roles are {', '.join(Role.values)}.", key="role")
        services.role_grant(
            team=team, user=person_named(team, name), role=role, by=request.user, reason=request.POST.get("reason", "")
        )

    return changing(
        request, slug, f"{name} holds the role {role}. It counts for requests that open from now on.", grant
    )


@page
@require_POST
def revoke_role(request: SignedIn, slug: str) -> HttpResponse:
    """Take a role away."""
    name, role = request.POST.get("username", ""), request.POST.get("role", "")
    return changing(
        request,
        slug,
        f"{name} no longer holds the role {role}.",
        lambda team: services.role_revoke(
            team=team, user=person_named(team, name), role=role, by=request.user, reason=request.POST.get("reason", "")
        ),
    )


@page
@require_POST
def set_sharing(request: SignedIn, slug: str) -> HttpResponse:
    """Show or hide the team's rows on other teams' leaderboards."""
    shared = request.POST.get("shared") == "yes"
    done = "Other teams see your rows on boards." if shared else "Only your team sees its rows on boards."
    return changing(
        request, slug, done, lambda team: services.boards_sharing_set(team=team, shared=shared, by=request.user)
    )


def whole(request: SignedIn, name: str) -> int:
    """A posted whole number.

    Raises:
        Invalid: it is none.
    """
    text = request.POST.get(name, "")
    number = number_in(text.strip())
    if number is None:
        raise Invalid(f"'{text[:40]}' is not a whole number.", key=name)
    return number


@page
@require_POST
def set_policy(request: SignedIn, slug: str) -> HttpResponse:
    """Raise what the gate asks; the floors are constants and open requests become stale."""

    def change(team: Team) -> None:
        reviews.policy_set(
            team=team,
            person=request.user,
            light_auto_promote=bool(request.POST.get("light_auto_promote")),
            approvals_light=whole(request, "approvals_light"),
            approvals_medium=whole(request, "approvals_medium"),
            approvals_heavy=whole(request, "approvals_heavy"),
        )

    return changing(
        request, slug, "The policy has a new version; requests that were open under the old one are stale.", change
    )
