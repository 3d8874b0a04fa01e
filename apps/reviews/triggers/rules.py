"""What the database itself refuses, as conditions in the SQL that SQLite and PostgreSQL share.

These are the last wall: they hold for the admin, a shell, a script, a forgotten code path and raw SQL alike. The
gate (``apps.reviews.gate``) asks the same and more, with better sentences, before it gets here. A condition states
what must hold; ``NEW`` and ``OLD`` are the row. Types are kept to those that both databases compare alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from apps.reviews.triggers.identity import KEYS, comes_in_beside, stays_itself

Event = Literal["INSERT", "UPDATE", "DELETE"]


@dataclass(frozen=True, slots=True)
class Rule:
    """``BEFORE event ON table``: refuse with ``message`` unless ``condition`` holds."""

    name: str
    table: str
    event: Event
    condition: str
    message: str


def _rank(column: str) -> str:
    return f"(CASE {column} WHEN 'heavy' THEN 3 WHEN 'medium' THEN 2 WHEN 'light' THEN 1 ELSE 0 END)"


def _same(*columns: str) -> str:
    return " AND ".join(f"NEW.{column} IS NOT DISTINCT FROM OLD.{column}" for column in columns)


APPEND_ONLY = (
    "kernels_promotion", "kernels_verdict", "kernels_kernel", "kernels_blob", "kernels_contribution",
    "kernels_quarantine", "reviews_decision", "reviews_veto", "reviews_vetolift", "audit_auditentry",
    "campaigns_engineresult", "campaigns_influence", "stream_event", "reviews_comment",
    "campaigns_canaryreading", "campaigns_selftest", "imports_importedreport", "imports_importedboard",
    "imports_importedkernel",
)
UNDELETABLE = (
    "reviews_reviewrequest", "reviews_thread", "reviews_verification", "teams_rolegrant", "teams_membership",
    "teams_team", "teams_user", "campaigns_round", "campaigns_campaign", "campaigns_job", "kernels_slot",
    "campaigns_canarybase", "campaigns_canarydrift",
)
CHANGING = tuple(table for table in KEYS if table not in APPEND_ONLY)

SOON = "{soon}"
"""Stands for a second from now by the database's own clock; nothing is dated later than that."""

_FORBIDDEN = "1 = 0"
_WRITES: tuple[Event, ...] = ("INSERT", "UPDATE")

# Who may decide on a request: an active person with a reviewer's role in its team, held now and since before it opened.
_ENTITLED = """EXISTS (
    SELECT 1 FROM teams_rolegrant g
    JOIN teams_membership m ON m.id = g.membership_id
    JOIN teams_user u ON u.id = m.user_id
    WHERE g.id = {decision}.grant_id AND g.role = 'reviewer' AND g.revoked_at IS NULL AND g.granted_at <= r.opened_at
      AND m.user_id = {decision}.user_id AND m.team_id = r.team_id AND u.is_active = TRUE AND u.kind = 'person'
)"""

# Who had a hand in a kernel, in whichever team: started or edited always counts, a comment it was built from counts
# for heavy.
_CONTRIBUTED = """(
    EXISTS (SELECT 1 FROM campaigns_campaign c WHERE c.id = r.campaign_id AND c.started_by_id = {decision}.user_id)
    OR EXISTS (SELECT 1 FROM campaigns_influence i WHERE i.campaign_id = r.campaign_id
        AND i.user_id = {decision}.user_id AND i.source IN ('start', 'API token'))
    OR EXISTS (SELECT 1 FROM kernels_contribution k
        JOIN kernels_kernel theirs ON theirs.digest = k.kernel_id
        JOIN kernels_kernel this ON this.digest = r.kernel_id AND this.normal_digest = theirs.normal_digest
        WHERE k.user_id = {decision}.user_id AND (k.kind IN ('started', 'edited') OR {tier} = 'heavy'))
)"""

_SELF_REVIEW = """({decision}.self_review = TRUE AND {tier} <> 'heavy'
    AND EXISTS (SELECT 1 FROM reviews_switches s WHERE s.self_review = TRUE)
    AND (SELECT COUNT(*) FROM teams_user p WHERE p.is_active = TRUE AND p.kind = 'person') = 1)"""

_DEMO_COUNTS = "({decision}.demo = FALSE OR EXISTS (SELECT 1 FROM reviews_switches s WHERE s.demo = TRUE))"

_APPROVERS = f"""(SELECT COUNT(DISTINCT d.user_id) FROM reviews_decision d
    JOIN reviews_reviewrequest r ON r.id = d.request_id
    WHERE d.request_id = NEW.request_id AND d.kind = 'approve' AND d.kernel_digest = NEW.kernel_id
      AND NOT EXISTS (SELECT 1 FROM reviews_decision later
        WHERE later.request_id = d.request_id AND later.user_id = d.user_id AND later.id > d.id)
      AND {_ENTITLED.format(decision="d")}
      AND {_DEMO_COUNTS.format(decision="d")}
      AND (NOT {_CONTRIBUTED.format(decision="d", tier="NEW.gate_tier")}
           OR {_SELF_REVIEW.format(decision="d", tier="NEW.gate_tier")}))"""

_PROMOTION: tuple[tuple[str, str, str], ...] = (
    # Said here as well as in CHECK constraints: those can be switched off by a connection, triggers cannot.
    ("kind", """(NEW.kind = 'reviewed' AND NEW.request_id IS NOT NULL AND NEW.restores_id IS NULL)
        OR (NEW.kind = 'auto' AND NEW.request_id IS NOT NULL AND NEW.restores_id IS NULL
            AND NEW.gate_tier IN ('none', 'light') AND NEW.required_approvals = 0)
        OR (NEW.kind = 'rollback' AND NEW.request_id IS NULL AND NEW.restores_id IS NOT NULL AND NEW.reason <> '')""",
     "A promotion is reviewed, automatic for a light change, or a rollback; there is no other kind."),
    ("policy", """EXISTS (SELECT 1 FROM kernels_slot s JOIN teams_team t ON t.id = s.team_id
        WHERE s.id = NEW.slot_id AND t.policy_version = NEW.policy_version)""",
     "A promotion follows the team's present policy."),
    ("request", """NEW.kind = 'rollback' OR EXISTS (
        SELECT 1 FROM reviews_reviewrequest r WHERE r.id = NEW.request_id AND r.slot_id = NEW.slot_id
          AND r.kernel_id = NEW.kernel_id AND r.state = 'verifying'
          AND r.champion_id IS NOT DISTINCT FROM NEW.previous_id AND r.policy_version = NEW.policy_version
          AND r.auto = (NEW.kind = 'auto')
          AND """ + _rank("r.gate_tier") + " <= " + _rank("NEW.gate_tier") + """
          AND """ + _rank("r.raised_tier") + " <= " + _rank("NEW.gate_tier") + ")",
     "A promotion needs the review request of this slot and kernel, in verification, against the present champion."),
    ("floors", """NEW.kind <> 'reviewed' OR EXISTS (
        SELECT 1 FROM kernels_slot s JOIN teams_team t ON t.id = s.team_id WHERE s.id = NEW.slot_id
          AND NEW.required_approvals >= (CASE NEW.gate_tier WHEN 'heavy' THEN t.approvals_heavy
            WHEN 'medium' THEN t.approvals_medium ELSE t.approvals_light END)
          AND NEW.required_approvals >= (CASE NEW.gate_tier WHEN 'heavy' THEN 2 ELSE 1 END))""",
     "A promotion may not ask for fewer approvals than its tier and the team's policy do."),
    ("approvals", f"NEW.kind <> 'reviewed' OR {_APPROVERS} >= NEW.required_approvals",
     "A promotion needs its distinct approvals: reviewers of the team since before the request opened, on exactly "
     "these bytes, none of them a contributor."),
    ("veto", """NOT EXISTS (
        SELECT 1 FROM reviews_veto v JOIN kernels_slot s ON s.team_id = v.team_id
        JOIN kernels_kernel k ON k.normal_digest = v.normal_digest
        WHERE s.id = NEW.slot_id AND k.digest = NEW.kernel_id
          AND NOT EXISTS (SELECT 1 FROM reviews_vetolift l WHERE l.veto_id = v.id))""",
     "A veto stands on this kernel; it cannot be promoted until the veto is lifted."),
    ("verdict", """EXISTS (
        SELECT 1 FROM kernels_verdict v JOIN kernels_slot s ON s.id = NEW.slot_id
        JOIN kernels_hardware h ON h.id = s.hardware_id
        JOIN campaigns_job j ON j.id = v.job_key
        WHERE v.id = NEW.verdict_id AND v.kernel_id = NEW.kernel_id AND v.team_id = s.team_id
          AND v."foreign" = FALSE AND v.purpose = 'promotion' AND v.outcome = 'passed' AND v.isolation >= 2
          AND v.recomputed = TRUE AND v.evidence IN ('bounded', 'profiled') AND v.hardware = h.name
          AND v.workload = s.workload AND j.verdict_id = v.id AND j.state = 'succeeded'
          AND (v.comparison = 'faster' OR NEW.kind = 'rollback'))""",
     "A promotion needs a fresh verification made here: passed, timed and faster, on this device and workload."),
    ("verification", """EXISTS (
        SELECT 1 FROM reviews_reviewrequest r JOIN kernels_verdict v ON v.job_key = r.verify_job_id
        WHERE r.id = NEW.request_id AND v.id = NEW.verdict_id)
      OR (NEW.kind = 'rollback' AND EXISTS (
        SELECT 1 FROM reviews_verification f JOIN kernels_verdict v ON v.job_key = f.job_id
        WHERE v.id = NEW.verdict_id AND f.slot_id = NEW.slot_id AND f.kernel_id = NEW.kernel_id AND f.kind = 'rollback'
          AND f.state = 'running' AND f.by_id = NEW.by_id AND f.restores_id = NEW.restores_id))""",
     "The verification is not the one that this request or rollback ordered."),
    ("drift", """NEW.kind = 'rollback' OR NOT EXISTS (
        SELECT 1 FROM campaigns_canarydrift d JOIN kernels_hardware h ON h.name = d.hardware
        JOIN kernels_slot s ON s.hardware_id = h.id WHERE s.id = NEW.slot_id AND d.ended_at IS NULL)""",
     "The device drifts; comparisons on it carry no promotion until its canary is back within noise."),
    ("previous", """(SELECT c.kernel_id FROM kernels_champion c JOIN kernels_slot s ON s.id = c.slot_id
        WHERE c.slot_id = NEW.slot_id AND s.state <> 'empty') IS NOT DISTINCT FROM NEW.previous_id""",
     "The champion of this slot changed; the promotion was made against another one."),
    ("auto", """NEW.kind <> 'auto' OR (
        EXISTS (SELECT 1 FROM kernels_slot s JOIN teams_team t ON t.id = s.team_id
            WHERE s.id = NEW.slot_id AND t.light_auto_promote = TRUE AND s.state <> 'quarantined')
        AND EXISTS (SELECT 1 FROM kernels_verdict v WHERE v.id = NEW.verdict_id AND v.suspicious = FALSE
            AND CAST(v.regressions AS TEXT) = '[]')
        AND NOT EXISTS (SELECT 1 FROM reviews_reviewrequest r WHERE r.slot_id = NEW.slot_id
            AND r.id IS DISTINCT FROM NEW.request_id AND r.state IN ('open', 'approved', 'verifying')))""",
     "A light change promotes by itself only where the team turned that on, never with a suspicious win or a "
     "regression, over a quarantined champion, or while a request is open on the slot."),
    ("rollback", """NEW.kind <> 'rollback' OR (
        EXISTS (SELECT 1 FROM kernels_promotion p WHERE p.id = NEW.restores_id AND p.slot_id = NEW.slot_id
            AND p.kernel_id = NEW.kernel_id)
        AND NOT EXISTS (SELECT 1 FROM kernels_quarantine q
            WHERE q.slot_id = NEW.slot_id AND q.kernel_id = NEW.kernel_id)
        AND EXISTS (SELECT 1 FROM teams_rolegrant g JOIN teams_membership m ON m.id = g.membership_id
            JOIN teams_user u ON u.id = m.user_id JOIN kernels_slot s ON s.team_id = m.team_id
            WHERE s.id = NEW.slot_id AND u.id = NEW.by_id AND g.role = 'reviewer' AND g.revoked_at IS NULL
              AND u.is_active = TRUE AND u.kind = 'person'))""",
     "A rollback needs a reviewer, and a kernel that was champion of this slot before and is not quarantined."),
)

_DECISION = f"""EXISTS (SELECT 1 FROM reviews_reviewrequest r WHERE r.id = NEW.request_id
    AND r.kernel_id = NEW.kernel_digest
    AND NEW.at >= r.opened_at AND NEW.at <= {SOON} AND NEW.reauthenticated_at <= NEW.at
    AND (r.state IN ('open', 'approved') OR (r.state = 'verifying' AND NEW.kind = 'veto'))
    AND {_ENTITLED.format(decision="NEW")}
    AND (NOT {_CONTRIBUTED.format(decision="NEW", tier="r.gate_tier")}
         OR {_SELF_REVIEW.format(decision="NEW", tier="r.gate_tier")}))"""

# What ends a drift: a maintainer's or admin's word, another base or environment class, or two readings in a row within.
_DRIFT_OVER = """(
    EXISTS (SELECT 1 FROM teams_user u WHERE u.id = NEW.ended_by_id AND u.is_active = TRUE AND u.kind = 'person'
        AND (u.is_superuser = TRUE OR EXISTS (
            SELECT 1 FROM teams_rolegrant g JOIN teams_membership m ON m.id = g.membership_id
            WHERE m.user_id = u.id AND g.role = 'maintainer' AND g.revoked_at IS NULL)))
    OR EXISTS (SELECT 1 FROM campaigns_canarybase b WHERE b.id = NEW.base_id AND b.ended_at IS NOT NULL)
    OR (SELECT c.environment_class FROM campaigns_canaryreading c WHERE c.base_id = NEW.base_id
        ORDER BY c.id DESC LIMIT 1) <> NEW.environment_class
    OR 2 = (SELECT COUNT(*) FROM (SELECT c.side AS side FROM campaigns_canaryreading c
        WHERE c.base_id = NEW.base_id AND c.environment_class = NEW.environment_class AND c.side IS NOT NULL
        ORDER BY c.id DESC LIMIT 2) latest WHERE latest.side = 0))"""

# Who may lift a veto: its author while an active reviewer, after that a maintainer of the team.
_LIFTER = """EXISTS (SELECT 1 FROM reviews_veto v JOIN teams_user u ON u.id = NEW.by_id
    WHERE v.id = NEW.veto_id AND u.is_active = TRUE AND u.kind = 'person' AND EXISTS (
        SELECT 1 FROM teams_rolegrant g JOIN teams_membership m ON m.id = g.membership_id
        WHERE m.team_id = v.team_id AND m.user_id = NEW.by_id AND g.revoked_at IS NULL
          AND ((v.by_id = NEW.by_id AND g.role = 'reviewer') OR (g.role = 'maintainer' AND NOT EXISTS (
            SELECT 1 FROM teams_rolegrant o JOIN teams_membership n ON n.id = o.membership_id
            JOIN teams_user a ON a.id = n.user_id
            WHERE n.team_id = v.team_id AND a.id = v.by_id AND a.is_active = TRUE AND o.role = 'reviewer'
              AND o.revoked_at IS NULL)))))"""

def _made_here(column: str) -> str:
    """A row leans on no verdict, or on one that was made here."""
    return f"""NEW.{column} IS NULL OR EXISTS (SELECT 1 FROM kernels_verdict v
        WHERE v.id = NEW.{column} AND v."foreign" = FALSE)"""


_MADE_HERE = (
    ("campaign", "campaigns_campaign", "incumbent_verdict_id", "The incumbent of a campaign"),
    ("round", "campaigns_round", "verdict_id", "A round"),
    ("request", "reviews_reviewrequest", "verify_verdict_id", "A review request"),
    ("quarantine", "kernels_quarantine", "verdict_id", "A quarantine"),
)
"""What leans on a verdict (beside promotions and the opening of requests, which say so themselves)."""

RULES: tuple[Rule, ...] = (
    *(Rule(f"gate_{table}_no_update", table, "UPDATE", _FORBIDDEN, f"Rows of {table} are never changed.")
      for table in APPEND_ONLY),
    *(Rule(f"gate_{table}_no_delete", table, "DELETE", _FORBIDDEN, f"Rows of {table} are never deleted.")
      for table in (*APPEND_ONLY, *UNDELETABLE)),
    *(Rule(f"gate_{table}_beside", table, "INSERT", comes_in_beside(table),
           f"A row of {table} with this key exists already; rows are never replaced.") for table in KEYS),
    *(Rule(f"gate_{table}_itself", table, "UPDATE", stays_itself(table),
           f"A row of {table} keeps its key and takes no other row's place.") for table in CHANGING),
    *(Rule(f"gate_promotion_{name}", "kernels_promotion", "INSERT", condition, message)
      for name, condition, message in _PROMOTION),
    Rule("gate_decision_entitled", "reviews_decision", "INSERT", _DECISION,
         "A decision needs an open request, its exact bytes, and a reviewer of the team since before it opened who "
         "is no contributor."),
    Rule("gate_veto_decided", "reviews_veto", "INSERT", """EXISTS (SELECT 1 FROM reviews_decision d
        JOIN reviews_reviewrequest r ON r.id = d.request_id JOIN kernels_kernel k ON k.digest = r.kernel_id
        WHERE d.id = NEW.decision_id AND d.kind = 'veto' AND d.user_id = NEW.by_id AND r.team_id = NEW.team_id
          AND k.normal_digest = NEW.normal_digest)""", "A veto needs the decision that made it."),
    Rule("gate_vetolift_entitled", "reviews_vetolift", "INSERT", _LIFTER,
         "A veto is lifted by its author, or by a maintainer once the author is no active reviewer any more."),
    Rule("gate_verdict_leased", "kernels_verdict", "INSERT", """NEW."foreign" = TRUE OR EXISTS (
        SELECT 1 FROM campaigns_job j WHERE j.id = NEW.job_key AND j.state = 'leased' AND j.kernel_id = NEW.kernel_id
          AND j.purpose = NEW.purpose AND j.team_id IS NOT DISTINCT FROM NEW.team_id)""",
         "A verdict is recorded only for a job that a worker holds; anything else is an import and marked foreign."),
    *(Rule(f"gate_{name}_made_here_{event.lower()}", table, event, _made_here(column),
           f"{what} rests on a verdict that was made here, never on an imported one.")
      for name, table, column, what in _MADE_HERE for event in _WRITES),
    *(Rule(f"gate_job_answer_{event.lower()}", "campaigns_job", event, """NEW.verdict_id IS NULL OR EXISTS (
        SELECT 1 FROM kernels_verdict v WHERE v.id = NEW.verdict_id AND v.job_key = NEW.id)""",
           "A job is answered by the verdict that was recorded under its own key.") for event in _WRITES),
    Rule("gate_importedkernel_foreign", "imports_importedkernel", "INSERT", """NEW.verdict_id IS NULL OR EXISTS (
        SELECT 1 FROM kernels_verdict v WHERE v.id = NEW.verdict_id AND v."foreign" = TRUE AND v.team_id IS NULL
          AND v.kernel_id = NEW.kernel_id)""", "An imported board shows foreign verdicts of no team alone."),
    Rule("gate_request_opened", "reviews_reviewrequest", "INSERT", f"""NEW.state = 'open' AND NEW.verify_job_id IS NULL
        AND NEW.verify_verdict_id IS NULL AND NEW.raised_tier = '' AND NEW.opened_at <= {SOON}
        AND EXISTS (SELECT 1 FROM kernels_slot s JOIN teams_team t ON t.id = s.team_id
            JOIN kernels_verdict v ON v.id = NEW.verdict_id
            WHERE s.id = NEW.slot_id AND t.id = NEW.team_id AND t.policy_version = NEW.policy_version
              AND v.kernel_id = NEW.kernel_id AND v.team_id = t.id AND v."foreign" = FALSE)
        AND (NEW.auto = FALSE OR NEW.gate_tier IN ('none', 'light'))""",
         "A review request begins open, now, under the present policy, with a verdict of its team on its kernel."),
    Rule("gate_grant_later", "teams_rolegrant", "INSERT", f"""NEW.granted_at <= {SOON} AND (NEW.role <> 'reviewer'
        OR NOT EXISTS (SELECT 1 FROM reviews_reviewrequest r JOIN teams_membership m ON m.team_id = r.team_id
            WHERE m.id = NEW.membership_id AND r.state IN ('open', 'approved', 'verifying')
              AND r.opened_at >= NEW.granted_at))""",
         "A reviewer's role begins now: after every request that is open, so that it counts for none of them."),
    Rule("gate_champion_insert", "kernels_champion", "INSERT", """EXISTS (SELECT 1 FROM kernels_promotion p
        WHERE p.id = NEW.promotion_id AND p.slot_id = NEW.slot_id AND p.kernel_id = NEW.kernel_id
          AND NOT EXISTS (SELECT 1 FROM kernels_promotion n WHERE n.slot_id = p.slot_id AND n.id > p.id))""",
         "A champion is the kernel of the newest promotion of its slot."),
    Rule("gate_champion_update", "kernels_champion", "UPDATE", """EXISTS (SELECT 1 FROM kernels_promotion p
        WHERE p.id = NEW.promotion_id AND p.slot_id = NEW.slot_id AND p.kernel_id = NEW.kernel_id
          AND NOT EXISTS (SELECT 1 FROM kernels_promotion n WHERE n.slot_id = p.slot_id AND n.id > p.id))""",
         "A champion is the kernel of the newest promotion of its slot."),
    Rule("gate_slot_champion", "kernels_slot", "UPDATE", """NEW.state <> 'champion' OR EXISTS (
        SELECT 1 FROM kernels_champion c JOIN kernels_promotion p ON p.id = c.promotion_id
        WHERE c.slot_id = NEW.id AND NOT EXISTS (SELECT 1 FROM kernels_quarantine q
            WHERE q.slot_id = NEW.id AND q.promotion_id = p.id))""",
         "A slot has a champion only through a promotion that is not quarantined."),
    Rule("gate_slot_fixed", "kernels_slot", "UPDATE",
         _same("team_id", "operator_id", "backend", "hardware_id", "workload"), "What a slot stands for is fixed."),
    Rule("gate_request_bound", "reviews_reviewrequest", "UPDATE",
         _same("team_id", "slot_id", "campaign_id", "kernel_id", "champion_id", "base_id", "verdict_id", "gate_tier",
               "policy_version", "conditions_digest", "opened_at", "auto"),
         "What a review request is bound to never changes; open a new one."),
    Rule("gate_request_final", "reviews_reviewrequest", "UPDATE",
         "NEW.state = OLD.state OR OLD.state IN ('open', 'approved', 'verifying')",
         "A closed review request stays closed; open a new one."),
    Rule("gate_request_raised", "reviews_reviewrequest", "UPDATE",
         _rank("NEW.raised_tier") + " >= " + _rank("OLD.raised_tier"), "A tier may be raised, never lowered."),
    Rule("gate_canaryreading_made", "campaigns_canaryreading", "INSERT", """EXISTS (SELECT 1 FROM kernels_verdict v
        JOIN campaigns_canarybase b ON b.id = NEW.base_id
        WHERE v.id = NEW.verdict_id AND v.purpose = 'canary' AND v."foreign" = FALSE AND v.kernel_id = b.kernel_id
          AND v.hardware = b.hardware AND v.environment_class = NEW.environment_class)""",
         "A reading is a canary's verdict on its frozen kernel, made on its device."),
    Rule("gate_canarybase_fixed", "campaigns_canarybase", "UPDATE",
         _same("operator_id", "backend", "hardware", "workload", "kernel_id", "begun_at", "by_id", "reason")
         + " AND (OLD.ended_at IS NULL OR " + _same("ended_at") + ")",
         "What a canary watches is fixed, and one that ended stays ended."),
    Rule("gate_canarydrift_fixed", "campaigns_canarydrift", "UPDATE",
         _same("base_id", "hardware", "environment_class", "since", "opened_at", "text")
         + " AND (OLD.ended_at IS NULL OR " + _same("ended_at", "ended_because", "ended_by_id") + ")",
         "A drift is history: it ends once and is otherwise as it was found."),
    Rule("gate_canarydrift_over", "campaigns_canarydrift", "UPDATE",
         f"NEW.ended_at IS NULL OR OLD.ended_at IS NOT NULL OR {_DRIFT_OVER}",
         "A drift ends by two readings within noise, another baseline or environment class, or a maintainer."),
    Rule("gate_grant_fixed", "teams_rolegrant", "UPDATE",
         _same("membership_id", "role", "granted_at") + " AND (OLD.revoked_at IS NULL OR "
         + _same("revoked_at") + ")", "A granted role can be revoked once, and is otherwise history."),
    Rule("gate_thread_kept", "reviews_thread", "UPDATE",
         _same("request_id", "kernel_id", "line", "blocking", "opened_by_id") + " AND (OLD.resolved_at IS NULL OR "
         + _same("resolved_at", "resolved_by_id") + ")", "A thread keeps what it blocks, and is resolved once."),
    Rule("gate_policy_versioned", "teams_team", "UPDATE", """NEW.policy_version > OLD.policy_version OR ("""
         + _same("policy_version", "light_auto_promote", "approvals_light", "approvals_medium", "approvals_heavy")
         + ")", "A change of the gate policy has a new version; open requests go stale with it."),
    Rule("gate_policy_floors", "teams_team", "UPDATE",
         "NEW.approvals_light >= 1 AND NEW.approvals_medium >= 1 AND NEW.approvals_heavy >= 2",
         "The floors of the gate policy can be raised, never lowered."),
    Rule("gate_user_kept", "teams_user", "UPDATE",
         "(NEW.kind = OLD.kind OR NEW.kind = 'service') AND (NEW.demo = TRUE OR OLD.demo = FALSE)",
         "A service account never becomes a person, nor a demo person a real one."),
    Rule("gate_membership_fixed", "teams_membership", "UPDATE", _same("team_id", "user_id"),
         "A membership keeps its person and team."),
    Rule("gate_campaign_fixed", "campaigns_campaign", "UPDATE", _same("started_by_id", "team_id", "slot_id"),
         "Who started a campaign, and for which slot, never changes."),
)
