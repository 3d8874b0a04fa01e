"""Writing people, teams, roles and tokens. Every grant of a role is audited and announced to the team."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable

from django.db import IntegrityError, transaction
from django.utils import timezone

from apps.audit.services import audit_record
from apps.core.errors import Invalid, Refused
from apps.teams import policies
from apps.teams.choices import AccountKind, Role
from apps.teams.models import ApiToken, Membership, RoleGrant, Team, User


def user_create(
    *, username: str, password: str | None = None, name: str = "", kind: str = AccountKind.PERSON, demo: bool = False
) -> User:
    """A new account; without a password it cannot sign in with one."""
    first, _, last = name.partition(" ")
    if kind == AccountKind.SERVICE and password:
        raise Invalid("A service account has no password; give it an API token.", key="password")
    return User.objects.create_user(
        username=username, password=password, first_name=first, last_name=last, kind=kind, demo=demo
    )


def team_create(*, name: str, slug: str, founder: User | None = None) -> Team:
    """A new team; ``founder`` becomes its first maintainer."""
    with transaction.atomic():
        team = Team.objects.create(name=name, slug=slug)
        audit_record(verb="team.created", subject=team, actor=founder, team=team)
    if founder is not None:
        _grant(team=team, user=founder, role=Role.MAINTAINER, by=founder, reason="founded the team")
    return team


def membership_add(*, team: Team, user: User, roles: Iterable[str], by: User | None) -> Membership:
    """Put a person into a team with a set of roles. ``by`` ``None`` is the installation itself (set-up, demo)."""
    for role in roles:
        role_grant(team=team, user=user, role=role, by=by)
    return Membership.objects.get(team=team, user=user)


def role_grant(*, team: Team, user: User, role: str, by: User | None, reason: str = "") -> RoleGrant:
    """Give a role. It counts for reviews that open from now on, never for those already open.

    Raises:
        Refused: ``by`` may not manage the team, or a service account would decide.
    """
    if by is not None:
        why = policies.may_manage(by, team)
        if why:
            raise Refused(why)
    if role not in Role.values:
        raise Invalid(f"'{role}' is no role. Roles: {', '.join(Role.values)}.", key="role")
    if user.kind != AccountKind.PERSON and role in (Role.REVIEWER, Role.MAINTAINER):
        raise Refused("A service account cannot hold the role reviewer or maintainer: only persons decide.")
    return _grant(team=team, user=user, role=role, by=by, reason=reason)


def _grant(*, team: Team, user: User, role: str, by: User | None, reason: str) -> RoleGrant:
    with transaction.atomic():
        membership, _ = Membership.objects.get_or_create(team=team, user=user)
        held = RoleGrant.objects.filter(membership=membership, role=role, revoked_at__isnull=True).first()
        if held is not None:
            return held
        try:
            with transaction.atomic():
                grant = RoleGrant.objects.create(
                    membership=membership, role=role, granted_at=timezone.now(), granted_by=by, reason=reason
                )
        except IntegrityError as error:
            held = RoleGrant.objects.filter(membership=membership, role=role, revoked_at__isnull=True).first()
            if held is not None:
                return held  # somebody else gave it in this moment
            raise Refused("The role was not given: by this machine's clock it would begin before a review request that "
                          "is open. Set the clock right and try again.") from error
        audit_record(verb="role.granted", subject=grant, actor=by, team=team, after=role, reason=reason,
                     data={"user": user.pk, "name": user.name})
    return grant


def role_revoke(*, team: Team, user: User, role: str, by: User, reason: str = "") -> None:
    """Take a role away at once; approvals given under it no longer count.

    Raises:
        Refused: ``by`` may not manage the team, or the team would be left without a maintainer.
    """
    why = policies.may_manage(by, team)
    if why:
        raise Refused(why)
    with transaction.atomic():
        live = RoleGrant.objects.filter(membership__team=team, role=role, revoked_at__isnull=True)
        grant = live.filter(membership__user=user).first()
        if grant is None:
            raise Invalid(f"{user.name} does not hold the role {role} in {team.name}.", key="role")
        if role == Role.MAINTAINER and live.exclude(pk=grant.pk).count() == 0:
            raise Refused(f"{user.name} is the last maintainer of {team.name}; grant the role to another person first.")
        RoleGrant.objects.filter(pk=grant.pk).update(revoked_at=timezone.now(), revoked_by=by)
        audit_record(verb="role.revoked", subject=grant, actor=by, team=team, before=role, reason=reason,
                     data={"user": user.pk, "name": user.name})


def boards_sharing_set(*, team: Team, shared: bool, by: User) -> Team:
    """Whether other teams see this team's rows on leaderboards."""
    why = policies.may_manage(by, team)
    if why:
        raise Refused(why)
    with transaction.atomic():
        Team.objects.filter(pk=team.pk).update(boards_shared=shared)
        team.refresh_from_db()
        audit_record(verb="team.boards", subject=team, actor=by, team=team, after="shared" if shared else "private")
    return team


def token_create(
    *, team: Team, user: User, name: str, by: User, can_run_campaigns: bool = False
) -> tuple[ApiToken, str]:
    """A token and its secret, which is shown once and kept only as a digest."""
    why = policies.may_manage(by, team)
    if why:
        raise Refused(why)
    secret = "ko_" + secrets.token_urlsafe(32)
    digest = "sha256:" + hashlib.sha256(secret.encode("utf-8")).hexdigest()
    with transaction.atomic():
        token = ApiToken.objects.create(
            team=team, user=user, name=name, digest=digest, can_run_campaigns=can_run_campaigns
        )
        audit_record(verb="token.created", subject=token, actor=by, team=team, data={"user": user.pk, "name": name})
    return token, secret


def token_revoke(*, token: ApiToken, by: User) -> None:
    """End a token at once."""
    why = policies.may_manage(by, token.team)
    if why:
        raise Refused(why)
    with transaction.atomic():
        ApiToken.objects.filter(pk=token.pk, revoked_at__isnull=True).update(revoked_at=timezone.now())
        audit_record(verb="token.revoked", subject=token, actor=by, team=token.team)
