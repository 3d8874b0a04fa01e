"""Who may do what (CONTRACTS section 2). ``None`` is allowed; otherwise the sentence says why not and who may.

Pure reads: services call them before they write, pages call them to render a control with its reason.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings

from apps.teams.choices import Role
from apps.teams.models import Team
from apps.teams.selectors import is_person, roles_of

SIGN_IN = "You are not signed in. Sign in first."
SERVICE = "Agents, workers and API tokens never do this; a person of the team must."


def may_see_boards(user: Any) -> str | None:
    """Leaderboard rows: every signed-in user, and everybody where the installation made boards public."""
    if settings.PUBLIC_BOARDS or (user is not None and user.is_authenticated):
        return None
    return "Leaderboards are not public here. Sign in first."


def may_see(user: Any, team: Team) -> str | None:
    """Campaigns, kernels, verdicts and events of a team."""
    if user is None or not user.is_authenticated:
        return SIGN_IN
    if user.is_superuser or roles_of(user, team):
        return None
    return "You are not in this team; one of its maintainers can add you."


def _holds(user: Any, team: Team, roles: tuple[str, ...], doing: str) -> str | None:
    if user is None or not user.is_authenticated:
        return SIGN_IN
    if not is_person(user):
        return SERVICE
    held = roles_of(user, team)
    if held.intersection(roles):
        return None
    names = " or ".join(roles)
    mine = ", ".join(sorted(held)) or "none"
    return f"{doing} needs the role {names} in {team.name}; your roles there: {mine}. A maintainer can grant it."


def _decides(user: Any, team: Team, doing: str) -> str | None:
    """What is left to reviewers; demo people are none once the switch is off."""
    why = _holds(user, team, (Role.REVIEWER,), doing)
    if why is None and user.demo and not settings.DEMO:
        return "Demo people decide nothing while the demo switch is off."
    return why


def may_run_campaigns(user: Any, team: Team, *, token_scope: bool = False) -> str | None:
    """Create, start, pause, stop, fork. ``token_scope``: an API token of this team that carries the scope acts."""
    if token_scope:
        return None if roles_of(user, team).intersection({Role.ENGINEER, Role.REVIEWER, Role.MAINTAINER}) else (
            "The account of this token may not run campaigns in the team.")
    return _holds(user, team, (Role.ENGINEER, Role.REVIEWER, Role.MAINTAINER), "Running campaigns")


def may_comment(user: Any, team: Team) -> str | None:
    """Comment on a review: every member."""
    return _holds(user, team, tuple(Role.values), "Commenting")


def may_review(user: Any, team: Team) -> str | None:
    """Approve, request changes, reject, veto: the reviewer role alone counts, whoever else one is.
    Whether a person is a contributor is asked per request (``reviews.policies``)."""
    return _decides(user, team, "Deciding on a promotion")


def may_roll_back(user: Any, team: Team) -> str | None:
    """Rollback: reviewers."""
    return _decides(user, team, "Rolling back a champion")


def may_manage(user: Any, team: Team) -> str | None:
    """Team policy, members, roles, tokens: maintainers, and admins of the installation."""
    if user is not None and user.is_authenticated and user.is_superuser and is_person(user):
        return None
    return _holds(user, team, (Role.MAINTAINER,), "Managing the team")


def may_operate(user: Any, team: Team | None) -> str | None:
    """Requeue, drain, self-test: maintainers, and admins. Devices are shared, so any team's maintainer may."""
    if user is not None and user.is_authenticated and user.is_superuser and is_person(user):
        return None
    if team is None:
        return "Operating the workers needs the role maintainer in a team of yours, or an admin."
    return _holds(user, team, (Role.MAINTAINER,), "Operating the workers")


def may_see_audit(user: Any, team: Team | None) -> str | None:
    """The trail: reviewers and maintainers of the team; admins everything."""
    if user is None or not user.is_authenticated:
        return SIGN_IN
    if user.is_superuser:
        return None
    if team is None:
        return "The whole installation's trail is for admins; choose one of your teams."
    return _holds(user, team, (Role.REVIEWER, Role.MAINTAINER), "Reading the audit trail")


def may_propose_operator(user: Any, team: Team) -> str | None:
    """Propose an operator of one's own: engineers and maintainers."""
    return _holds(user, team, (Role.ENGINEER, Role.MAINTAINER), "Proposing an operator")


def may_activate_operator(user: Any, team: Team, *, proposer: Any) -> str | None:
    """Activate a proposed operator: a reviewer who did not propose it."""
    if proposer is not None and user == proposer:
        return "You proposed this operator; another reviewer of the team must activate it."
    return _holds(user, team, (Role.REVIEWER,), "Activating an operator")
