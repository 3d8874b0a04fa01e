"""Seals of decisions: a keyed digest over what was decided, made where a person's decision is recorded.

Triggers hold for everybody who writes through the database; somebody who owns its file can switch them off for a
moment and leave no trace. The key is not in the database, so a decision written into it by hand has no valid seal,
counts for nothing, and cannot be given one. A changed key is named in ``SECRET_KEY_FALLBACKS`` to keep older seals.
"""

from __future__ import annotations

import json
from datetime import UTC

from django.conf import settings
from django.utils.crypto import constant_time_compare, salted_hmac

from apps.reviews.models import Decision

SALT = "apps.reviews.seals.decision"


def _content(decision: Decision) -> str:
    return json.dumps([
        decision.request_id, decision.user_id, decision.grant_id, decision.kind, decision.comment,
        decision.kernel_digest, decision.request_version, decision.gate_tier, decision.ticked,
        decision.reauthenticated_at.astimezone(UTC).isoformat(), decision.session_hash, decision.demo,
        decision.self_review, decision.at.astimezone(UTC).isoformat(),
    ])


def seal(decision: Decision, key: str | None = None) -> str:
    """The seal of a decision, 64 hex digits; with the installation's key unless another is given."""
    return salted_hmac(SALT, _content(decision), secret=key, algorithm="sha256").hexdigest()


def is_sealed(decision: Decision) -> bool:
    """Whether the decision is as it was recorded here."""
    keys = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return any(constant_time_compare(decision.seal, seal(decision, key)) for key in keys)
