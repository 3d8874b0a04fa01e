"""Closed lists and machines of the gate (CONTRACTS section 4)."""

from __future__ import annotations

from django.db import models

from apps.core.transitions import Machine


class RequestState(models.TextChoices):
    """States of a review request."""

    OPEN = "open", "open"
    CHANGES_REQUESTED = "changes_requested", "changes requested"
    APPROVED = "approved", "approved"
    VERIFYING = "verifying", "verifying"
    PROMOTED = "promoted", "promoted"
    CLOSED = "closed", "closed"
    REJECTED = "rejected", "rejected"
    VETOED = "vetoed", "vetoed"
    WITHDRAWN = "withdrawn", "withdrawn"
    STALE = "stale", "stale"


_S = RequestState
REQUEST_MACHINE = Machine("review request", {
    _S.OPEN: frozenset({_S.CHANGES_REQUESTED, _S.APPROVED, _S.REJECTED, _S.VETOED, _S.WITHDRAWN, _S.STALE}),
    _S.APPROVED: frozenset(
        {_S.VERIFYING, _S.CHANGES_REQUESTED, _S.REJECTED, _S.VETOED, _S.WITHDRAWN, _S.STALE}
    ),
    _S.VERIFYING: frozenset({_S.PROMOTED, _S.CLOSED, _S.VETOED, _S.STALE}),
    _S.CHANGES_REQUESTED: frozenset(),
    _S.PROMOTED: frozenset(),
    _S.CLOSED: frozenset(),
    _S.REJECTED: frozenset(),
    _S.VETOED: frozenset(),
    _S.WITHDRAWN: frozenset(),
    _S.STALE: frozenset(),
})
REQUEST_OPEN = (_S.OPEN, _S.APPROVED, _S.VERIFYING)


class DecisionKind(models.TextChoices):
    """What a reviewer may decide. Approving needs no comment, the others do."""

    APPROVE = "approve", "approve"
    REQUEST_CHANGES = "request_changes", "request changes"
    REJECT = "reject", "reject"
    VETO = "veto", "veto"


class RequirementState(models.TextChoices):
    """State of one requirement of the gate; an error counts as not met."""

    MET = "met", "met"
    NOT_MET = "not_met", "not met"
    NOT_APPLICABLE = "not_applicable", "not applicable"
    ERROR = "error", "error, so not met"


class SpotCheckState(models.TextChoices):
    """States of a spot check."""

    ASKED = "asked", "asked"
    ANSWERED = "answered", "answered"
    LAPSED = "lapsed", "lapsed"


SPOT_CHECK_MACHINE = Machine("spot check", {
    SpotCheckState.ASKED: frozenset({SpotCheckState.ANSWERED, SpotCheckState.LAPSED}),
    SpotCheckState.ANSWERED: frozenset(),
    SpotCheckState.LAPSED: frozenset(),
})


class VerificationState(models.TextChoices):
    """A re-verification that no request carries."""

    RUNNING = "running", "running"
    DONE = "done", "done"
    REFUSED = "refused", "refused"
