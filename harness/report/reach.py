"""Figures that were asked for on an H200 in bfloat16, and whether a report reaches them. Targets, not results.

The anchor of each is what the best library took on the same card when the figure was set.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.domain.peers import Row, Side
from harness.domain.report import Figure, Mean, ReportOperator
from harness.peers.measure import BASELINE

HARDWARE = "nvidia-h200"
GEOMETRIC_MEAN = 1.4
OVER_BASELINE, OVER_AUTOTUNE = 2.6, 1.44


@dataclass(frozen=True, slots=True)
class Target:
    """One figure to reach; see ``harness.domain.report.Figure``."""

    operator: str
    shape: str
    reach: float
    anchor: str
    kind: Literal["at most us", "at least share"] = "at most us"


TARGETS = (
    Target("softmax", "8192x8192", 66.0, "Liger 67.5 us"),
    Target("rms_norm", "8192x8192", 66.0, "torch.compile 67.1 us"),
    Target("rms_norm", "4096x4096", 18.5, "torch.compile 20.5 us"),
    Target("rms_norm", "32x8192", 4.5, "torch.compile 8.35 us"),
    Target("add_rms_norm", "8192x8192", 131.0, "torch.compile 136.5 us"),
    Target("layer_norm", "8192x8192", 67.0, "torch.compile 76.5 us"),
    Target("swiglu", "8192x8192", 97.0, "torch.compile 97.0 us"),
    Target("cross_entropy", "4096x32000", 75.0, "torch.compile 186 us"),
    Target("cross_entropy", "8192x128256", 530.0, "torch.compile 1250 us"),
    Target("topk", "4096x32000", 120.0, "torch 1056 us"),
    Target("topk", "8192x128256", 900.0, "torch 7626 us"),
    Target("decode_attention", "B1 H32/8 D128 S8192", 13.0, "cuDNN 21.6 us"),
    Target("decode_attention", "B1 H32/8 D128 S131072", 127.0, "cuDNN 135.9 us"),
    Target("decode_attention", "B16 H32/8 D128 S4096", 66.0, "cuDNN 74.2 us"),
    Target("decode_attention", "B64 H32/8 D128 S8192", 485.0, "cuDNN 485 us"),
    Target("matmul_bias_gelu", "4096x4096x4096", 199.0, "cuBLAS and GELU 199.5 us"),
    Target("rope", "B4 S4096 H32/8 D128", 0.9, "copy roof", "at least share"),
)


def figures_of(operators: Sequence[ReportOperator], hardware: str, copy_gbps: float | None) -> tuple[Figure, ...]:
    """Every target with what was measured; none on other hardware."""
    if hardware != HARDWARE:
        return ()
    known = {operator.name: operator for operator in operators}
    return tuple(_figure(target, known.get(target.operator), copy_gbps) for target in TARGETS)


def _figure(target: Target, operator: ReportOperator | None, copy_gbps: float | None) -> Figure:
    """Held against what was asked for, unless all that was timed so far is the baseline, before any campaign."""
    ours = fastest(() if operator is None else operator.rows, target.shape)
    measured = reached = None
    text = "not measured"
    if ours is not None and ours.median_us is not None:
        if target.kind == "at most us":
            measured = ours.median_us
            reached, text = measured <= target.reach, f"{measured:.1f} us, at most {target.reach:g} us asked for"
        elif ours.gbps is not None and copy_gbps:
            measured = ours.gbps / copy_gbps
            reached, text = measured >= target.reach, f"{measured:.0%} of the copy roof, {target.reach:.0%} asked for"
    if measured is not None and ours is not None and operator is not None and _before_campaigns(operator, ours):
        reached, text = None, f"{text}; the baseline alone was timed, no campaign ran"
    return Figure(target.operator, target.shape, target.kind, target.reach, target.anchor, measured, reached, text)


def _before_campaigns(operator: ReportOperator, ours: Row) -> bool:
    return ours.name == BASELINE and not operator.campaigns


def fastest(rows: Iterable[Row], shape: str) -> Row | None:
    """Our fastest kernel on ``shape``."""
    mine = [row for row in rows if row.shape == shape and row.side is Side.OURS and row.median_us is not None]
    return min(mine, key=lambda row: row.median_us or 0.0, default=None)


def means_of(operators: Sequence[ReportOperator], hardware: str) -> tuple[Mean, ...]:
    """Geometric means of best library over ours, over the figures' shapes and over all, and of agents over the baseline
    and over autotuning."""
    pairs = {(operator.name, one.shape): one.ratio.ratio for operator in operators for one in operator.best}
    wanted = {(target.operator, target.shape) for target in TARGETS} if hardware == HARDWARE else set()
    found = []
    if wanted:
        listed = [ratio for key, ratio in pairs.items() if key in wanted]
        found.append(_mean("best library over ours, shapes of the figures asked for", listed, GEOMETRIC_MEAN,
                           whole=len(listed) == len(wanted)))
    found.append(_mean("best library over ours, all shapes", list(pairs.values())))
    for operator in operators:
        decode = operator.name == "decode_attention" and hardware == HARDWARE
        searched = operator.search is not None and operator.search.kernel is not None
        for other, reach in (("baseline", OVER_BASELINE), ("autotune", None if searched else OVER_AUTOTUNE),
                             ("search", OVER_AUTOTUNE)):
            ratios = _between(operator.rows, other, "playbook")
            if ratios:
                found.append(_mean(f"{operator.name}: {other} over playbook", ratios, reach if decode else None))
    return tuple(found)


def _between(rows: Iterable[Row], slower: str, faster: str) -> list[float]:
    """Time of one of our kernels over another's, shape by shape, from the same session."""
    us = {(row.shape, row.name): row.median_us for row in rows if row.side is Side.OURS}
    shapes = [shape for shape, name in us if name == faster]
    return [a / b for shape in shapes if (a := us.get((shape, slower))) and (b := us[shape, faster])]


def _mean(name: str, ratios: list[float], reach: float | None = None, *, whole: bool = True) -> Mean:
    if not ratios:
        return Mean(name, 0, None, reach, None)
    ratio = math.exp(math.fsum(map(math.log, ratios)) / len(ratios))
    return Mean(name, len(ratios), ratio, reach, None if reach is None or not whole else ratio >= reach)
