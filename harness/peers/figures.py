"""From a session's samples to rows, to the agreement of both clocks, and to the best pair of every shape. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harness.domain.peers import ClockAgreement, Row, Side, best_peers
from harness.domain.report import BestPair
from harness.domain.samples import PairedRound
from harness.domain.verdict import Ratio
from harness.evaluation.timing.comparison import pooled
from harness.evaluation.timing.statistics import median, quantile, robust_cv
from harness.operators.base import OperatorSpec, ShapePoint
from harness.peers.base import Peer
from harness.peers.session import Taken

ITEM_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
Samples = Sequence[Sequence[float]]


def rows_of(taken: Taken, spec: OperatorSpec, points: Iterable[ShapePoint], dtype: str, peers: Sequence[Peer],
            kernels: Mapping[str, str], control: str | None, versions: Mapping[str, str]) -> tuple[Row, ...]:
    """One row per shape and side: our kernels (``kernels``: digest by name), the ``control`` among them called
    natively, and every peer, absent ones with the reason."""
    found = []
    for point in points:
        label = point.label
        for name, digest in kernels.items():
            rounds = taken.ours[label].get(name, ())
            found.append(_row(taken, spec, point, dtype, Side.OURS, name, rounds, kernel=digest))
        if control is not None:
            found.append(_row(taken, spec, point, dtype, Side.CONTROL, control, taken.peers[label].get(control, ()),
                              kernel=kernels.get(control)))
        for peer in peers:
            version = versions.get(peer.package, "absent")
            found.append(_row(taken, spec, point, dtype, Side.PEER, peer.name, taken.peers[label].get(peer.name, ()),
                              version=None if version == "absent" else version, detail=peer.detail))
    return tuple(found)


def _row(taken: Taken, spec: OperatorSpec, point: ShapePoint, dtype: str, side: Side, name: str, rounds: Samples, *,
         kernel: str | None = None, version: str | None = None, detail: str = "") -> Row:
    key = (point.label, name)
    if not rounds:
        known = taken.failed.get(point.label) if side is Side.OURS else taken.absent.get(key)
        why = known or "it was not measured in this session."
        return Row(spec.name, point.label, dtype, side, name, kernel, version, detail=detail, absent=why)
    values = [value for one in rounds for value in one]
    medians = [median(one) for one in rounds]
    middle = median(medians)
    moved, flops = spec.bytes_per_call(point.work, ITEM_BYTES[dtype]), spec.flops_per_call(point.work)
    floor_s = taken.floors.get(point.label)
    checked = taken.checks.get(key, {}) if side is not Side.OURS else {}
    if checked.get("why"):
        detail = f"{detail}; {checked['why']}" if detail else str(checked["why"])
    return Row(
        operator=spec.name, shape=point.label, dtype=dtype, side=side, name=name, kernel=kernel, version=version,
        median_us=middle, p10=quantile(values, 0.1), p90=quantile(values, 0.9),
        cv=median([robust_cv(one) for one in rounds]), n=len(values), round_us=tuple(medians),
        gbps=moved / middle / 1e3, tflops=flops / middle / 1e6,
        roof_share=None if floor_s is None else floor_s * 1e6 / middle, error=checked.get("error"),
        worst_ratio=checked.get("worst_ratio"), right=checked.get("right"),
        graph=True if side is Side.OURS and taken.captured else taken.graphs.get(key), detail=detail,
    )


def ratio_of(other: Samples, mine: Samples) -> Ratio:
    """Time of ``other`` over ours with its interval: rounds are neighbours in time, samples within them are drawn."""
    return pooled([(1.0, [PairedRound(tuple(a[:n]), tuple(b[:n])) for a, b in zip(other, mine, strict=False)
                          if (n := min(len(a), len(b)))])])


def clocks_of(taken: Taken, spec: OperatorSpec, control: str, kernel: str) -> tuple[ClockAgreement, ...]:
    """The control kernel by both clocks, for every shape where both measured it."""
    found = []
    for label, sides in taken.ours.items():
        native, plan = taken.peers[label].get(control), sides.get(control)
        if native and plan:
            found.append(ClockAgreement(spec.name, label, kernel, median([median(one) for one in native]),
                                        median([median(one) for one in plan]), ratio_of(native, plan)))
    return tuple(found)


def best_of(taken: Taken, rows: Iterable[Row]) -> tuple[BestPair, ...]:
    """For every shape the fastest right library, our fastest kernel, and how they compare."""
    rows = tuple(rows)
    best, found = best_peers(rows), []
    for (_, label), peer in best.items():
        mine = [row for row in rows if row.shape == label and row.side is Side.OURS and row.median_us is not None]
        if not mine or peer.median_us is None:
            continue
        ours = min(mine, key=lambda row: row.median_us or 0.0)
        ratio = ratio_of(taken.peers[label][peer.name], taken.ours[label][ours.name])
        found.append(BestPair(label, peer.name, peer.median_us, ours.name, ours.median_us or 0.0, ratio))
    return tuple(found)


def raw(taken: Taken) -> dict[str, Any]:
    """All samples, for whoever wants to reckon again: microseconds by clock, shape, side and round; and the seconds
    that each shape took to get ready."""
    return {"peers": _plain(taken.peers), "ours": _plain(taken.ours), "prepared": dict(taken.prepared)}


def _plain(rounds: Mapping[str, Mapping[str, Samples]]) -> dict[str, dict[str, list[list[float]]]]:
    return {label: {name: [[round(us, 3) for us in one] for one in many] for name, many in sides.items()}
            for label, sides in rounds.items()}
