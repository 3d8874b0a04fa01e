"""A verdict as text for a terminal."""

from __future__ import annotations

import sys
from typing import Any

from harness.domain.plan import LaunchResources
from harness.domain.profile import CounterProfile
from harness.domain.verdict import CaseResult, Ratio, Reason, Resources, ShapeTiming, Verdict
from harness.domain.vocabulary import Stage

BEFORE_IT_RUNS = (Stage.ADMIT, Stage.STATIC, Stage.ARITHMETIC)


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
    print_resources(verdict.resources)
    _print_timing(verdict)
    if verdict.profile is not None:
        print_profile(verdict.profile)
    out(f"  {_isolation(verdict)}, evaluator {verdict.evaluator.version}\n")


def print_resources(resources: Resources) -> None:
    """Registers, spills, shared memory and occupancy of every launch, and the memory that a call needs at most."""
    out = sys.stdout.write
    for launch in resources.launches:
        out(f"  {launch.function} grid {launch.grid}: {launch.registers} registers, {launch.spill_bytes} B spilled, "
            f"{launch.shared_bytes} B shared{_occupancy(launch)}\n")
    if resources.launches and resources.peak_bytes is not None:
        parts = ""
        if resources.argument_bytes is not None:
            scratch = resources.peak_bytes - resources.argument_bytes
            parts = f": {_size(resources.argument_bytes)} of arguments, {_size(scratch)} of scratch"
        out(f"  memory of the largest call {_size(resources.peak_bytes)}{parts}\n")


def _occupancy(launch: LaunchResources) -> str:
    if launch.occupancy is None:
        return ""
    limited = f", limited by {launch.limiter}" if launch.limiter and launch.occupancy < 1.0 else ""
    return f", occupancy {launch.occupancy:.0%}{limited}"


def print_profile(profile: CounterProfile) -> None:
    """What the profiler found, shape by shape, or why there are no counters."""
    source = profile.tool or profile.source
    sys.stdout.write(f"  profile by {source}{f' ({profile.why})' if profile.why else ''}\n")
    for shape in profile.shapes:
        sys.stdout.write(f"    {shape.shape}: {shape.text}\n")
        if len(shape.launches) > 1:
            for launch in shape.launches:
                sys.stdout.write(f"      {launch.function}: {launch.text}\n")


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
        sys.stdout.write("".join(f"    {line}\n" for line in figures_of(shape)))
    for role, ratio in timing.overall.items():
        sys.stdout.write(f"  overall {_ratio(ratio)} over {role}\n")
    sys.stdout.write(f"  {verdict.comparison} than the {verdict.compared_with}; A/A noise {timing.noise:.2%}, "
                     f"{timing.rounds} rounds, evidence {timing.evidence}\n")
    for text in verdict.suspicious:
        sys.stdout.write(f"  suspicious, a person has to look: {text}\n")
    _print_library(verdict.environment.clocks.get("library"))


def _print_library(known: Any) -> None:
    """What the rules on libraries were held against, or that they are off; nothing in older verdicts."""
    if isinstance(known, dict):
        known = ", ".join(f"{best['name']} {_time(best['us'])} on {shape}" for shape, best in known.items())
        sys.stdout.write(f"  best libraries of this environment class: {known}\n")
    elif known:
        sys.stdout.write(f"  rules on libraries {known}\n")


def figures_of(shape: ShapeTiming) -> list[str]:
    """The other times and the rates of a shape, in a line each; what was not measured is left out."""
    times = {"cold": shape.cold_us, "hot": shape.hot_us, "first call": shape.first_call_us,
             "host included": shape.host_us}
    said = [f"{name} {_time(us)}" for name, us in times.items() if us is not None]
    rates = [f"{value:,.{digits}f} {unit}" for value, digits, unit in
             ((shape.gbps, 1, "GB/s"), (shape.tflops, 2, "TFLOP/s")) if value is not None]
    shares = [f"{share:.1%} of the measured {name} roof" for name, share in
              (("copy", shape.copy_share), ("read", shape.read_share), ("matmul", shape.matmul_share))
              if share is not None]
    if not shares and shape.roof_share is not None:
        shares = [f"{shape.roof_share:.0%} of the roof"]
    elif shape.roof_share is not None:
        shares.append(f"{shape.roof_share:.0%} of the one that binds")
    return [", ".join(line) for line in (said, rates + shares) if line]


def _time(us: float) -> str:
    return f"{us:.1f} us" if us < 1e4 else f"{us / 1e3:,.0f} ms"


def _size(count: int) -> str:
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} B"


def _ratio(ratio: Ratio) -> str:
    return f"{ratio.ratio:.3f}x [{ratio.low:.3f}, {ratio.high:.3f}]"


def _isolation(verdict: Verdict) -> str:
    """The level that was proved; a kernel that was refused as text had no process that one could be proved for."""
    level = verdict.evaluator.isolation.level
    if level == 0 and verdict.stage in BEFORE_IT_RUNS:
        return "nothing of it ran"
    return f"isolation level {level}"


def _at(line: int | None) -> str:
    return f"line {line}: " if line else ""


def _where(reason: Reason) -> str:
    case = f"case {reason.case}: " if reason.case and reason.case not in reason.text else ""
    return f"[{reason.code}] {_at(reason.line)}{case}"
