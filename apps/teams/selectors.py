"""Reading teams, members and roles."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from apps.audit.models import AuditEntry
from apps.core.errors import NotFound
from apps.teams.choices import AccountKind, Role
from apps.teams.models import ApiToken, Membership, RoleGrant, Team, User


def is_person(user: Any) -> bool:
    """Whether this is a signed-in, active person (not anonymous, not a service account)."""
    return bool(
        user is not None and user.is_authenticated and user.is_active and user.kind == AccountKind.PERSON
    )


def live_grants(user: Any, team: Team) -> QuerySet[RoleGrant]:
    """The roles a user holds in a team now; none for an inactive or anonymous one."""
    if user is None or not user.is_authenticated or not user.is_active:
        return RoleGrant.objects.none()
    return RoleGrant.objects.filter(membership__user=user, membership__team=team, revoked_at__isnull=True)


def roles_of(user: Any, team: Team) -> frozenset[str]:
    """Names of the roles held now."""
    return frozenset(live_grants(user, team).values_list("role", flat=True))


def is_member(user: Any, team: Team) -> bool:
    """Whether the user holds any role of the team now."""
    return live_grants(user, team).exists()


def reviewer_grant(user: Any, team: Team, *, before: datetime | None = None) -> RoleGrant | None:
    """The live reviewer role of a person, if granted at or before ``before``."""
    if not is_person(user):
        return None
    grants = live_grants(user, team).filter(role=Role.REVIEWER)
    return (grants if before is None else grants.filter(granted_at__lte=before)).first()


def teams_of(user: Any) -> QuerySet[Team]:
    """Teams whose own things the user may see: the own ones, all of them for an admin."""
    if user is None or not user.is_authenticated or not user.is_active:
        return Team.objects.none()
    if user.is_superuser:
        return Team.objects.order_by("name")
    held = RoleGrant.objects.filter(membership__user=user, revoked_at__isnull=True)
    return Team.objects.filter(pk__in=held.values("membership__team")).order_by("name")


def team_for(user: Any, slug: str) -> Team:
    """A team by slug.

    Raises:
        NotFound: it does not exist or is another team's.
    """
    team = teams_of(user).filter(slug=slug).first()
    if team is None:
        raise NotFound("There is no such team here, or you are not in it.")
    return team


def members_of(team: Team) -> list[tuple[User, list[RoleGrant]]]:
    """Present members with their live grants, by name."""
    grants = RoleGrant.objects.filter(membership__team=team, revoked_at__isnull=True)
    by_user: dict[int, tuple[User, list[RoleGrant]]] = {}
    for grant in grants.select_related("membership__user").order_by("membership__user__username", "role"):
        user = grant.membership.user
        by_user.setdefault(user.pk, (user, []))[1].append(grant)
    return list(by_user.values())


def reviewers_of(team: Team) -> QuerySet[User]:
    """Active persons who hold the reviewer role now."""
    held = RoleGrant.objects.filter(membership__team=team, role=Role.REVIEWER, revoked_at__isnull=True)
    return User.objects.filter(
        pk__in=held.values("membership__user"), is_active=True, kind=AccountKind.PERSON
    ).order_by("username")


def grants_announced(user: Any, since: datetime) -> QuerySet[RoleGrant]:
    """Roles granted since then in the teams that the user reviews for: what reviewers are told about."""
    reviewed = RoleGrant.objects.filter(membership__user=user, role=Role.REVIEWER, revoked_at__isnull=True)
    grants = RoleGrant.objects.filter(membership__team__in=reviewed.values("membership__team"), granted_at__gte=since)
    return grants.select_related("membership__user", "membership__team", "granted_by").order_by("-granted_at")


def memberships_of(team: Team) -> QuerySet[Membership]:
    """All memberships ever, present or past."""
    return Membership.objects.filter(team=team).select_related("user")


def active_persons() -> int:
    """How many active persons the installation has (self-review needs exactly one)."""
    return User.objects.filter(is_active=True, kind=AccountKind.PERSON).count()


def token_maker(token: ApiToken) -> User | None:
    """Who made a token and so may know its secret, from the trail."""
    entry = AuditEntry.objects.filter(verb="token.created", object_type=ApiToken._meta.label_lower,
                                      object_id=str(token.pk)).select_related("actor").first()
    return entry.actor if entry is not None else None


def token_owner(secret: str) -> ApiToken | None:
    """The unrevoked token of an active account that this secret belongs to."""
    digest = "sha256:" + hashlib.sha256(secret.encode("utf-8")).hexdigest()
    token = ApiToken.objects.select_related("team", "user").filter(
        digest=digest, revoked_at__isnull=True, user__is_active=True
    ).first()
    if token is not None:
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=timezone.now())
    return token
