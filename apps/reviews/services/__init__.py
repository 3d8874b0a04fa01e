"""Writes of the reviews app by name; see the modules for what each raises."""

from apps.reviews.services.decisions import review_decide, veto_lift
from apps.reviews.services.promotion import gate_prepare, gate_sweep, promotion_finish, promotion_start
from apps.reviews.services.quarantine import champion_quarantine
from apps.reviews.services.recheck import champions_recheck
from apps.reviews.services.requests import (
    review_open,
    review_raise_tier,
    review_withdraw,
    stale_check,
    verdict_to_review,
)
from apps.reviews.services.rollback import rollback_start, slot_empty
from apps.reviews.services.threads import (
    policy_set,
    spot_check_answer,
    spot_check_ask,
    thread_open,
    thread_reply,
    thread_resolve,
    viewed_mark,
)

__all__ = [
    "champion_quarantine", "champions_recheck", "gate_prepare", "gate_sweep", "policy_set", "promotion_finish",
    "promotion_start", "review_decide", "review_open", "review_raise_tier", "review_withdraw", "rollback_start",
    "slot_empty", "spot_check_answer", "spot_check_ask", "stale_check", "thread_open", "thread_reply",
    "thread_resolve", "verdict_to_review", "veto_lift", "viewed_mark",
]
