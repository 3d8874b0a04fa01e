"""A verdict as text for a terminal."""

from __future__ import annotations

import sys

from harness.domain.verdict import CaseResult, Ratio, Reason, Verdict


def print_verdict(verdict: Verdict) -> None:
    """Outcome, reasons, errors, times and ratios; what was not timed says so."""
    out = sys.stdout.write
    digest = verdict.kernel.removeprefix("sha256:")[:8]
    out(f"{verdict.outcome}  {digest}  {verdict.operator.name} on {verdict.hardware}, stage {verdict.stage}\n")
    for reason in (*verdict.reasons, *verdict.notes):
        out(f"  {_where(reason)}{reason.text}\n")
    if verdict.step_tier is not None:
        why = "; ".join(_at(r.line) + r.text for r in verdict.step_tier.why) or "no difference"
        out(f"  tier {verdict.step_tier.tier}: {why}\n")
    cases = verdict.correctness.cases
    if cases:
        worst = max(cases, key=lambda case: case.worst_ratio or 0.0)
        share = worst.worst_ratio or 0.0
        out(f"  correctness {sum(c.passed for c in cases)}/{len(cases)}, worst {share:.2f} of the bound\n")
        _print_errors(worst)
    for launch in verdict.resources.launches:
        out(f"  {launch.function} grid {launch.grid}: {launch.registers} registers, {launch.spill_bytes} B spilled, "
            f"{launch.shared_bytes} B shared\n")
    _print_timing(verdict)
    out(f"  isolation level {verdict.evaluator.isolation.level}, evaluator {verdict.evaluator.version}\n")


def _print_errors(case: CaseResult) -> None:
    """Errors of one case side by side, and the bound that applied where the candidate came closest to it."""
    sides = {"candidate": case.error, "baseline": case.baseline_error, "library": case.library_error}
    errors = ", ".join(f"{side} {error:.2g}" for side, error in sides.items() if error is not None)
    if errors:
        sys.stdout.write(f"    case {case.name}: largest error against float64 {errors}\n")
    if case.bound is not None:
        bound = case.bound
        sys.stdout.write(f"    bound there {bound.absolute:.2g}, {bound.relative:.2g} of {bound.scale:.2g} "
                         f"({bound.binding} decides: honest {bound.honest:.2g}, rounding {bound.rounding:.2g}, "
                         f"cap {bound.cap:.2g})\n")


def _print_timing(verdict: Verdict) -> None:
    timing = verdict.timing
    if timing is None:
        sys.stdout.write("  not timed\n")
        return
    for shape in timing.shapes:
        versus = ", ".join(f"{_ratio(r)} over {role}" for role, r in shape.versus.items())
        sys.stdout.write(f"  {shape.shape}: {shape.median_us:.1f} us [{shape.p10:.1f}, {shape.p90:.1f}]  {versus}\n")
    for role, ratio in timing.overall.items():
        sys.stdout.write(f"  overall {_ratio(ratio)} over {role}\n")
    sys.stdout.write(f"  {verdict.comparison} than the {verdict.compared_with}; A/A noise {timing.noise:.2%}, "
                     f"{timing.rounds} rounds, evidence {timing.evidence}\n")


def _ratio(ratio: Ratio) -> str:
    return f"{ratio.ratio:.3f}x [{ratio.low:.3f}, {ratio.high:.3f}]"


def _at(line: int | None) -> str:
    return f"line {line}: " if line else ""


def _where(reason: Reason) -> str:
    case = f"case {reason.case}: " if reason.case else ""
    return f"[{reason.code}] {_at(reason.line)}{case}"
