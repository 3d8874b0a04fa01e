"""A report on a terminal: our kernels and libraries shape by shape, the figures asked for, the means."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from harness.domain.peers import Row, Side
from harness.domain.report import Report

SIDES = {Side.PEER: "library", Side.OURS: "ours", Side.CONTROL: "ours, native"}


def print_report(report: Report, page: Path) -> None:
    """Everything that fits a terminal."""
    for operator in report.operators:
        rows: list[tuple[str, ...]] = [("shape", "side", "kernel", "us", "p10 to p90", "n",
                                        "GB/s", "roof", "right")]
        rows += [_cells(row) for row in operator.rows]
        _table(f"{operator.title} ({operator.name}, {operator.dtype})", rows)
        for one in operator.clocks:
            say(f"  {one.shape}: the baseline natively {one.native_us:.1f} us, by our own clock {one.plan_us:.1f} "
                f"us, ratio {one.ratio.ratio:.3f} [{one.ratio.low:.3f}, {one.ratio.high:.3f}]")
        if operator.search is not None:
            search = operator.search
            say(f"  search: {search.configurations} configurations ({search.timed} timed) in {search.seconds:.0f} s, "
                f"{search.per_minute:.0f} a minute; {search.device_seconds:.0f} s of the device")
        for campaign in operator.campaigns:
            said = campaign.final.headline if campaign.final else campaign.cause
            say(f"  {campaign.agent}: {campaign.evaluations} evaluations in {campaign.seconds:.0f} s "
                f"({campaign.device_seconds:.0f} s of the device). {said}")
    if report.figures:
        words = {True: "reached", False: "not reached", None: "not measured"}
        _table("Figures asked for", [("operator", "shape", "measured and asked for", "")] + [
            (one.operator, one.shape, one.text, words[one.reached]) for one in report.figures])
    for mean in report.means:
        asked = "" if mean.reach is None else f", at least {mean.reach:g} asked for"
        said = "nothing measured" if mean.ratio is None else f"{mean.ratio:.3f}x over {mean.shapes} shape(s)"
        say(f"Geometric mean, {mean.name}: {said}{asked}")
    for sentence in report.missing:
        say(sentence)
    say(f"{report.hardware}, {report.environment.class_}: {report.seconds.wall:.0f} s, of which the device was held "
        f"{report.seconds.device:.0f} s. Page: {page}")


def _cells(row: Row) -> tuple[str, ...]:
    if row.median_us is None:
        return (row.shape, SIDES[row.side], row.name, "absent", row.absent or "", "", "", "", "")
    return (row.shape, SIDES[row.side], row.name, f"{row.median_us:.2f}", f"{row.p10:.2f} to {row.p90:.2f}", str(row.n),
            f"{row.gbps:.0f}", "" if row.roof_share is None else f"{row.roof_share:.0%}",
            {True: "yes", False: "NO", None: ""}[row.right])


def _table(title: str, rows: Sequence[Sequence[str]]) -> None:
    say(f"\n{title}")
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    widths = [min(width, 60) for width in widths]
    for row in rows:
        say("  " + "  ".join(_padded(row, widths)).rstrip())


def _padded(row: Iterable[str], widths: Iterable[int]) -> list[str]:
    return [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]


def say(text: str) -> None:
    """One line on standard output."""
    sys.stdout.write(text + "\n")
