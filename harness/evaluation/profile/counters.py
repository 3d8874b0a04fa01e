"""From a profiler's row to the counters of one launch. Pure."""

from __future__ import annotations

from dataclasses import replace

from harness.domain.plan import LaunchResources
from harness.domain.profile import Bottleneck, LaunchCounters, ShapeCounters, Stall
from harness.evaluation.profile import metrics
from harness.evaluation.profile.table import Row
from harness.evaluation.profile.words import bottleneck, sentences

MOST_STALLS, LEAST_STALL = 3, 0.05


def launch_counters(row: Row, resources: LaunchResources) -> LaunchCounters:
    """The counters of one launch. ``resources`` are the compiler's, for what a profiler does not report."""
    values = row.values
    shares = {name: _share(values.get(metric)) for name, metric in metrics.SHARES.items()}
    if shares["l2_hit"] is not None:  # read in other passes than the requests: of few requests more may hit than came
        shares["l2_hit"] = min(shares["l2_hit"], 1.0)
    us = values.get(metrics.TIME)
    moved = [values.get(name) for name in (metrics.READ_BYTES, metrics.WRITTEN_BYTES)]
    shared = [values.get(name) for name in metrics.SHARED_BYTES]
    x, y, z = resources.grid
    made = LaunchCounters(
        function=resources.function, grid=(x, y, z), threads=row.threads, bound=Bottleneck.UNKNOWN, text="", us=us,
        dram_gbps=sum(value or 0.0 for value in moved) / us / 1e3 if us and None not in moved else None,
        limiter=_limiter(row) or resources.limiter, waves=values.get(metrics.WAVES),
        registers=_count(values.get(metrics.REGISTERS)) or resources.registers,
        shared_bytes=_count(sum(value or 0.0 for value in shared)) if None not in shared else resources.shared_bytes,
        spill_bytes=resources.spill_bytes,
        bank_conflicts=_ratio(values.get(metrics.CONFLICTS), values.get(metrics.WAVEFRONTS)),
        stalls=_stalls(row), **shares,
    )
    return finished(made)


def finished(launch: LaunchCounters) -> LaunchCounters:
    """``launch`` with what binds it and its sentences."""
    work = [share for share in (launch.sm_share, launch.tensor_share) if share is not None]
    bound = bottleneck(launch.dram_share, max(work) if work else None, launch.l2_share)
    bound = bound if launch.bound is Bottleneck.UNKNOWN else launch.bound
    return replace(launch, bound=bound, text=sentences(replace(launch, bound=bound)))


def shape_counters(shape: str, launches: tuple[LaunchCounters, ...]) -> ShapeCounters:
    """All launches of a call; the longest one says what binds it."""
    longest = max(launches, key=lambda launch: launch.us or 0.0)
    times = [launch.us for launch in launches]
    total = sum(us or 0.0 for us in times) if None not in times else None
    text = longest.text
    if len(launches) > 1 and total:
        text = f"{longest.function} takes {(longest.us or 0.0) / total:.0%} of {len(launches)} launches. {text}"
    return ShapeCounters(shape, longest.bound, text, total, launches)


def _stalls(row: Row) -> tuple[Stall, ...]:
    """The main reasons why warps wait, as shares of all that they do between two instructions, issuing included."""
    found = {name: row.values.get(metrics.STALL_METRIC.format(name)) for name in (metrics.ISSUED, *metrics.STALLS)}
    known = {name: value for name, value in found.items() if value is not None and value >= 0.0}
    total = sum(known.values())
    if not total:
        return ()
    known.pop(metrics.ISSUED, None)
    largest = sorted(known.items(), key=lambda item: -item[1])[:MOST_STALLS]
    return tuple(Stall(name, value / total, metrics.STALLS[name]) for name, value in largest
                 if value / total >= LEAST_STALL)


def _limiter(row: Row) -> str | None:
    """The resource that lets the fewest blocks in; full warp slots go first among equals, as in ``targets``."""
    limits = {name: row.values.get(metric) for name, metric in metrics.LIMITS.items()}
    known = {name: value for name, value in limits.items() if value is not None and value > 0.0}
    if not known:
        return None
    least = min(known.values())
    return "warps" if known.get("warps") == least else next(name for name, value in known.items() if value == least)


def _share(per_cent: float | None) -> float | None:
    return None if per_cent is None or per_cent < 0.0 else per_cent / 100.0


def _ratio(part: float | None, whole: float | None) -> float | None:
    if part is None or whole is None:
        return None
    return part / whole if whole > 0.0 else 0.0


def _count(value: float | None) -> int | None:
    return None if value is None else round(value)
