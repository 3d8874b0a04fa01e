"""Tables of the page: every number with its unit in the head, every plot's data in words beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from harness.campaign.predicted import measured_text
from harness.domain.peers import Row, Side
from harness.domain.report import CurvePoint, Figure, Mean, ReportCampaign, ReportOperator, ReportSearch
from harness.domain.verdict import Ratio

SIDES = {Side.PEER: "library", Side.OURS: "ours", Side.CONTROL: "ours, called natively"}
REACHED = {True: "<span class='ok'>reached</span>", False: "<span class='bad'>not reached</span>",
           None: "not measured"}
Cell = str | tuple[str, str]
"""A cell's HTML, or HTML and the class of the cell."""


def table(caption: str, heads: Sequence[tuple[str, bool]], rows: Iterable[Sequence[str]]) -> str:
    """A table with a caption; ``heads`` are (text, numeric). Cells are HTML already; the first one heads its row."""
    head = "".join(f"<th scope='col'{_class(numeric)}>{escape(text)}</th>" for text, numeric in heads)
    body = "".join("<tr>" + "".join(
        f"<th scope='row'>{cell}</th>" if not column else f"<td{_class(heads[column][1])}>{cell}</td>"
        for column, cell in enumerate(row)) + "</tr>" for row in rows)
    words = escape(caption, quote=True)
    return (f"<div class='scroll' tabindex='0' role='region' aria-label='{words}'><table><caption>{words}</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>")


def _class(numeric: bool) -> str:
    return " class='n'" if numeric else ""


def ratio_text(ratio: Ratio | None) -> str:
    """``1.310x [1.280, 1.330]``, or the words for what nobody measured."""
    return "not timed" if ratio is None else f"{ratio.ratio:.3f}x [{ratio.low:.3f}, {ratio.high:.3f}]"


def rows_table(operator: ReportOperator) -> str:
    """All rows of the session: ours, libraries, control; below them how some were run and why others are absent."""
    heads = [("Shape", False), ("Side", False), ("Kernel or library", False), ("Version", False), ("Median, us", True),
             ("p10 to p90, us", True), ("Spread (cv)", True), ("n (rounds)", True), ("GB/s", True), ("TFLOP/s", True),
             ("Share of roof", True), ("Error against float64", True), ("Share of the bound", True)]
    return table(f"{operator.title}: every kernel and library, one session, interleaved", heads,
                 (_row(row) for row in operator.rows)) + _notes(operator.rows)


def _row(row: Row) -> list[str]:
    first = [escape(row.shape), SIDES[row.side], escape(row.name), escape(row.version or "")]
    if row.median_us is None:
        return [*first, "absent", *[""] * 8]
    return [*first, f"{row.median_us:.2f}", f"{row.p10:.2f} to {row.p90:.2f}", _share(row.cv),
            f"{row.n} ({len(row.round_us)})", f"{row.gbps:.0f}", f"{row.tflops:.1f}", _share(row.roof_share),
            "" if row.error is None else f"{row.error:.3g}",
            "" if row.worst_ratio is None else f"{row.worst_ratio:.2f}"]


def _notes(rows: Sequence[Row]) -> str:
    """A line for every remark on rows of one kernel or library, with the shapes that it is about."""
    about: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        for remark in _remarks(row):
            about.setdefault((row.name, remark), []).append(row.shape)
    whole = {name: {row.shape for row in rows if row.name == name} for name, _ in about}
    lines = "".join(
        f"<li>{escape(name)}{'' if set(shapes) == whole[name] else escape(' on ' + ', '.join(shapes))}: "
        f"{escape(remark)}</li>" for (name, remark), shapes in about.items())
    return f"<ul class='soft notes'>{lines}</ul>" if lines else ""


def _remarks(row: Row) -> list[str]:
    if row.median_us is None:
        return ["absent: " + (row.absent or "no reason is on record")]
    return [*([row.detail] if row.detail else []),
            *(["called from the host, not captured in a graph"] if row.graph is False else []),
            *(["outside the bound: not counted as a library that does the same"] if row.right is False else [])]


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


def clocks_table(operator: ReportOperator) -> str:
    """The baseline by both clocks."""
    heads = [("Shape", False), ("Natively, us", True), ("Our kernels' clock, us", True), ("Ratio, 95 % interval", True)]
    return table("The baseline by both clocks: called natively beside the libraries, and by our kernels' clock", heads,
                 ([escape(one.shape), f"{one.native_us:.2f}", f"{one.plan_us:.2f}", ratio_text(one.ratio)]
                  for one in operator.clocks))


def best_table(operators: Iterable[ReportOperator]) -> str:
    """The best pair of every shape."""
    heads = [("Operator and shape", False), ("Best library", False), ("Library, us", True), ("Our best", False),
             ("Ours, us", True), ("Library over ours, 95 % interval", True)]
    return table("The best library and our fastest kernel", heads, (
        [f"{escape(operator.name)} {escape(one.shape)}", escape(one.peer), f"{one.peer_us:.2f}", escape(one.kernel),
         f"{one.ours_us:.2f}", ratio_text(one.ratio)] for operator in operators for one in operator.best))


def figures_table(figures: Iterable[Figure]) -> str:
    """The figures asked for."""
    return table("Figures asked for", [("Operator and shape", False), ("Best library when it was set", False),
                                       ("Measured and asked for", False), ("Reached", False)], (
        [f"{escape(one.operator)} {escape(one.shape)}", escape(one.anchor), escape(one.text), REACHED[one.reached]]
        for one in figures))


def means_table(means: Iterable[Mean]) -> str:
    """Geometric means."""
    heads = [("Of", False), ("Shapes", True), ("Ratio", True), ("Asked for", True), ("Reached", False)]
    return table("Geometric means", heads, (
        [escape(mean.name), str(mean.shapes), "not measured" if mean.ratio is None else f"{mean.ratio:.3f}x",
         "" if mean.reach is None else f"{mean.reach:g}x", "" if mean.reach is None else REACHED[mean.reached]]
        for mean in means))


def search_table(search: ReportSearch) -> str:
    """What a bulk search found, bucket by bucket."""
    ruled = ", ".join(f"{count} by {why}" for why, count in search.ruled_out.items()) or "none"
    caption = (f"Bulk search ({search.strategy}): {search.points} of {search.grid} points a bucket, "
               f"{search.configurations} configurations, {search.timed} timed, ruled out {ruled}; {search.seconds:.0f} "
               f"s, {search.per_minute:.0f} configurations a minute, the device held {search.device_seconds:.0f} s")
    heads = [("Shape bucket", False), ("Best values", False), ("Over the baseline, last rung", True), ("Samples", True)]
    return table(caption, heads, (
        [escape(one.bucket or "all shapes"), escape(", ".join(f"{key}={value}" for key, value in one.params.items())),
         f"{one.ratio:.3f}x", str(one.samples)] for one in search.best))


def campaign_tables(campaign: ReportCampaign) -> str:
    """Log, curve and predictions of one campaign."""
    return _log(campaign) + _curve(campaign) + _predictions(campaign)


def _log(campaign: ReportCampaign) -> str:
    heads = [("Round", True), ("Direction", False), ("Change", False), ("Predicted gain", True), ("Tier", False),
             ("Outcome", False), ("Over the incumbent, 95 % interval", True), ("Conclusion", False)]
    return table(f"Log of {campaign.agent}", heads, (
        [str(entry.round), escape(entry.direction), escape(entry.change_summary), _gain(entry.expected_gain),
         escape(str(entry.step_tier or "")), escape(str(entry.outcome)), ratio_text(entry.performance_change),
         escape(str(entry.conclusion))] for entry in campaign.log))


def _gain(value: float | None) -> str:
    return "" if value is None else f"{value:+.1%}"


def _curve(campaign: ReportCampaign) -> str:
    heads = [("Evaluation", True), ("Round", True), ("Outcome", False), ("Over the baseline, 95 % interval", True),
             ("Best so far", True), ("Wall, s", True), ("Device held, s", True), ("Registers", True),
             ("Shared memory, bytes", True), ("Spills, bytes", True)]
    return table(f"Evaluations of {campaign.agent}", heads, (_step(step) for step in campaign.steps))


def _step(step: CurvePoint) -> list[str]:
    return [str(step.evaluation), str(step.round), escape(str(step.outcome)), ratio_text(step.versus_baseline),
            "not timed" if step.best is None else f"{step.best:.3f}x", f"{step.seconds:.1f}",
            f"{step.device_seconds:.1f}", *("" if value is None else str(value)
                                            for value in (step.registers, step.shared_bytes, step.spill_bytes))]


def _predictions(campaign: ReportCampaign) -> str:
    if not campaign.predictions:
        return ""
    heads = [("Round", True), ("Step", False), ("Direction", False), ("Predicted", True),
             ("Measured, 95 % interval", True), ("Log error", True), ("Verdict", False)]
    return table(f"Predicted and measured gain of {campaign.agent}", heads, (
        [str(row.round), escape(row.step), escape(row.direction), _gain(row.predicted), measured_text(row),
         "" if row.error is None else f"{row.error:+.3f}", escape(row.judgement)] for row in campaign.predictions))
