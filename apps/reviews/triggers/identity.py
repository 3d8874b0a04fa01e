"""A row stays the row it was: what keeps SQLite's ``REPLACE`` and moved keys from rewriting history.

``INSERT OR REPLACE`` and ``UPDATE OR REPLACE`` delete the row in their way without asking its delete trigger (that
needs ``recursive_triggers``, which each connection sets for itself), and a changed key hands a row's history to
another one. So both are refused where they begin: at the row that comes in.
"""

from __future__ import annotations

_OPEN = "state IN ('open', 'approved', 'verifying')"

KEYS: dict[str, tuple[tuple[str, ...], ...]] = {
    "kernels_promotion": (("id",), ("request_id",)),
    "kernels_verdict": (("id",), ("job_key",)),
    "kernels_kernel": (("digest",),),
    "kernels_blob": (("digest",),),
    "kernels_contribution": (("id",), ("team_id", "kernel_id", "user_id", "kind")),
    "kernels_quarantine": (("id",),),
    "kernels_champion": (("id",), ("slot_id",), ("promotion_id",)),
    "kernels_slot": (("id",), ("team_id", "operator_id", "backend", "hardware_id", "workload")),
    "reviews_decision": (("id",),),
    "reviews_veto": (("id",), ("decision_id",)),
    "reviews_vetolift": (("id",), ("veto_id",)),
    "reviews_reviewrequest": (("id",), ("verify_job_id",)),
    "reviews_thread": (("id",),),
    "reviews_comment": (("id",),),
    "reviews_verification": (("id",), ("job_id",)),
    "audit_auditentry": (("id",),),
    "campaigns_engineresult": (("id",), ("campaign_id", "seq")),
    "campaigns_influence": (("id",), ("campaign_id", "user_id", "source")),
    "campaigns_campaign": (("id",),),
    "campaigns_round": (("id",), ("campaign_id", "number")),
    "campaigns_job": (("id",), ("verdict_id",)),
    "campaigns_selftest": (("id",),),
    "campaigns_canarybase": (("id",), ("job_id",)),
    "campaigns_canaryreading": (("id",), ("verdict_id",)),
    "campaigns_canarydrift": (("id",),),
    "imports_importedreport": (("id",), ("digest",)),
    "imports_importedboard": (("id",), ("report_id", "operator_id")),
    "imports_importedkernel": (("id",), ("verdict_id",), ("board_id", "kernel_id", "name")),
    "stream_event": (("id",), ("stream_id", "seq")),
    "teams_rolegrant": (("id",),),
    "teams_membership": (("id",), ("team_id", "user_id")),
    "teams_team": (("id",), ("slug",)),
    "teams_user": (("id",), ("username",)),
}
"""Primary and unique keys of the tables that the gate believes, the primary one first."""

PARTIAL: dict[str, tuple[tuple[tuple[str, ...], str], ...]] = {
    "reviews_reviewrequest": ((("campaign_id",), _OPEN),),
    "reviews_verification": ((("slot_id",), "state = 'running'"),),
    "campaigns_round": ((("campaign_id",), "state IN ('thinking', 'evaluating')"),),
    "teams_rolegrant": ((("membership_id", "role"), "revoked_at IS NULL"),),
    "campaigns_canarybase": ((("operator_id", "backend", "hardware"), "ended_at IS NULL"),),
    "campaigns_canarydrift": ((("base_id",), "ended_at IS NULL"),),
}
"""Unique keys that hold only among rows of which the condition is true."""


def _taken(table: str, columns: tuple[str, ...], where: str = "", besides: str = "") -> str:
    equal = " AND ".join(f"o.{column} = NEW.{column}" for column in columns)
    both = f" AND o.{where} AND NEW.{where}" if where else ""
    return f"NOT EXISTS (SELECT 1 FROM {table} o WHERE {equal}{both}{besides})"


def _partial(table: str, besides: str = "") -> list[str]:
    return [_taken(table, columns, where, besides) for columns, where in PARTIAL.get(table, ())]


def comes_in_beside(table: str) -> str:
    """Condition of an insert: no row holds any of its unique keys."""
    return " AND ".join([*(_taken(table, columns) for columns in KEYS[table]), *_partial(table)])


def stays_itself(table: str) -> str:
    """Condition of an update: the primary key stays, and no other row holds a unique key it changes to."""
    (primary,), *others = KEYS[table]
    besides = f" AND o.{primary} <> OLD.{primary}"
    return " AND ".join([f"NEW.{primary} = OLD.{primary}", *(_taken(table, columns, "", besides) for columns in others),
                         *_partial(table, besides)])
