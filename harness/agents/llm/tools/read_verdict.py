"""``read_verdict``: what the evaluator found about a round's kernel."""

from __future__ import annotations

from typing import Any

from harness.agents.llm.data import quote
from harness.agents.llm.tools.tool import Refused, Tool, ToolResult, strict
from harness.agents.llm.tools.workbench import Workbench
from harness.domain.summary import VerdictSummary
from harness.domain.verdict import Reason

MAX_REASONS = 8


def _run(bench: Workbench, arguments: dict[str, Any]) -> ToolResult:
    context, number = bench.context, arguments["round"]
    verdicts = {attempt.round: attempt.verdict for attempt in context.attempts}
    if context.baseline_verdict is not None:
        verdicts[0] = context.baseline_verdict
    verdict = verdicts.get(number)
    if verdict is None:
        known = ", ".join(map(str, sorted(verdicts))) or "none yet"
        raise Refused(f"Round {number} has no verdict. Rounds with one: {known}.")
    return ToolResult(verdict_text(number, verdict))


def verdict_text(number: int, verdict: VerdictSummary) -> str:
    """A verdict in lines; messages that come from a kernel or its compiler are quoted."""
    lines = [f"Round {number}: {verdict.outcome}, {str(verdict.comparison).replace('_', ' ')}"
             f" (decided at stage {verdict.stage})."]
    for role, ratio in verdict.overall.items():
        lines.append(f"Measured against the {role}: {ratio.ratio:.3f}x ({ratio.low:.3f} to {ratio.high:.3f}).")
    for shape in verdict.shapes:
        share = f", {shape.roof_share:.0%} of the roof" if shape.roof_share is not None else ""
        lines.append(f"- {shape.shape}: {shape.median_us:.1f} us{share}")
    if not verdict.timed:
        lines.append("Nothing was timed.")
    if verdict.step_tier is not None:
        why = "; ".join(f"line {r.line}: {r.text}" if r.line else r.text for r in verdict.tier_reasons[:5])
        lines.append(f"The change was {verdict.step_tier}" + (f" ({why})." if why else "."))
    figures = {"registers a thread": verdict.registers, "spilled bytes": verdict.spill_bytes,
               "shared bytes a block": verdict.shared_bytes, "scratch bytes": verdict.scratch_bytes}
    known = [f"{value:,} {name}" for name, value in figures.items() if value is not None]
    if known:
        lines.append(f"Resources: {', '.join(known)}.")
    if verdict.worst_ratio is not None:
        lines.append(f"The largest error took {verdict.worst_ratio:.0%} of its bound.")
    if verdict.regressions:
        lines.append(f"Slower shapes: {', '.join(verdict.regressions)}.")
    reasons = [_reason(reason) for reason in verdict.reasons[:MAX_REASONS]]
    if reasons:
        lines.append(quote(f"evaluator, verdict of round {number}", "\n".join(reasons)))
    return "\n".join(lines)


def _reason(reason: Reason) -> str:
    where = f"line {reason.line}: " if reason.line is not None else ""
    case = f" [case {reason.case}]" if reason.case else ""
    seen = f" got {reason.got}, expected {reason.expected}" if reason.got is not None else ""
    return f"{reason.code}: {where}{reason.text}{case}{seen}"


READ_VERDICT = Tool(
    "read_verdict", "Read the evaluator's verdict on a round (0 is the baseline): outcome, times, reasons, resources.",
    strict({"round": {"type": "integer", "minimum": 0, "description": "the round's number"}}),
    _run,
)
