"""Everything the page of one verdict shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apps.bridge import api
from apps.campaigns.canary.selectors import drift_windows, in_doubt
from apps.campaigns.screens.round import findings_of, text_of
from apps.core.plotting import to_json
from apps.kernels.models import Verdict
from apps.kernels.plots import distribution
from apps.kernels.screens.sheet import MARGIN, sheet
from apps.kernels.screens.verdict import cases, failures, paired, steadiness, trust
from apps.kernels.screens.verdicts import samples_of


def verdict_context(verdict: Verdict) -> dict[str, Any]:
    """Outcome and failure first, then how it was judged, then the figures with everything they rest on."""
    document: Mapping[str, Any] = verdict.document
    round_row = verdict.rounds.select_related("campaign").first()
    goal = round_row.campaign.goal if round_row else (verdict.job.request["goal"] if hasattr(verdict, "job") else {})
    samples, text = samples_of(verdict), text_of(verdict.kernel)
    shown = sheet(document, goal=goal, samples=samples)
    declared = case_facts(verdict)
    details = cases.case_details(document, declared)
    by_shape = {row.shape: row.versus for row in shown.shapes if row.versus}
    clocks = (document.get("environment") or {}).get("clocks") or {}
    return {
        "verdict": verdict, "sheet": shown, "round": round_row, "document": document, "text": text,
        "findings": findings_of(dict(document)),
        "flagged": [reason["line"] for reason in document.get("reasons", []) if reason.get("line")],
        "failures": failures.failures(document, details, text, declared),
        "details": details, "matrix": cases.matrix(details),
        "plots": paired.paired_plots(samples, shown.role, shown.margin or MARGIN, by_shape),
        "spread": steadiness.spread_rows(document, goal), "rounds": steadiness.round_rows(samples),
        "telemetry": steadiness.telemetry(clocks), "slopes": steadiness.slope_rows(clocks),
        "profile": shown.profile,
        "evidence": trust.evidence_ladder(shown.evidence), "isolation": trust.isolation_ladder(verdict.isolation),
        "isolation_text": str(verdict.isolation), "walls": trust.walls(document), "latency": trust.latency(document),
        "figure": to_json(distribution(shown.sides, shown.role_word)) if shown.sides else None,
        "drifted": in_doubt(drift_windows(verdict.hardware), verdict.created_at) if shown.shapes else False,
        "facts": environment_facts(document),
    }


def case_facts(verdict: Verdict) -> dict[str, Mapping[str, Any]]:
    """Declared cases by name, those that the verdict's place uses last; none where the operator is gone."""
    try:
        facts = api.operator(verdict.kernel.operator.name)
    except api.BridgeError:
        return {}
    order = (facts.cases, facts.dry_cases) if verdict.kernel.backend == "triton" else (facts.dry_cases, facts.cases)
    return {case["name"]: case for declared in order for case in declared}


def environment_facts(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The environment in words: the class is shown apart, clocks have a card of their own."""
    environment = document.get("environment") or {}
    names = {"cpu": "CPU", "gpu": "GPU", "driver": "Driver", "python": "Python"}
    found = [(word, str(environment[key])) for key, word in names.items() if environment.get(key)]
    return found + [(name, str(version)) for name, version in (environment.get("packages") or {}).items()]
