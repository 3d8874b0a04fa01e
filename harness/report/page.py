"""The report as one HTML file: style, script and plotly inside, nothing from a network, light and dark."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from harness.domain.report import Report, ReportKernel, ReportOperator
from harness.report import plots, tables

HERE = Path(__file__).parent
PLOTLY = HERE.parents[1] / "static" / "vendor" / "plotly-strict.min.js"
FOLDED = 5
"""So many parts that are missing stand behind their number."""
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:"


def page(report: Report, plotly: Path = PLOTLY) -> str:
    """The page's HTML. Without the plotly bundle it has tables alone, and says so."""
    bundle = plotly.read_text("utf-8") if plotly.is_file() else ""
    if "</script" in bundle.lower():
        bundle = ""  # it could not stand inside a page
    drawn = "" if bundle else "<p class='soft'>The plotting library is not in this checkout: tables alone.</p>"
    return "\n".join([
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width, initial-scale=1'>",
        f"<meta http-equiv='Content-Security-Policy' content=\"{POLICY}\">",
        f"<title>Kernels on {escape(report.hardware)}</title>",
        f"<style>{(HERE / 'page.css').read_text('utf-8')}</style></head><body><main>",
        *_head(report), drawn, *_overview(report),
        *(part for operator in report.operators for part in _operator(operator)),
        *_end(report), "</main>",
        f"<script>{bundle}</script><script>{(HERE / 'page.js').read_text('utf-8')}</script></body></html>\n",
    ])


def _head(report: Report) -> Iterator[str]:
    environment = report.environment
    yield ("<header><div class='top'><h1>Kernels, agents and libraries on "
           f"{escape(environment.gpu or report.hardware)}</h1>"
           "<button class='theme' type='button' hidden>Light or dark</button></div>")
    yield (f"<p>{escape(report.hardware)}, {escape(report.backend)}, workload {escape(report.workload)}, environment "
           f"class <code>{escape(environment.class_)}</code>, evaluator {escape(report.evaluator)}. Begun "
           f"{escape(report.began)}, finished {escape(report.finished or 'not yet')}; {report.seconds.wall:.0f} s in "
           f"all, of which the device was held {report.seconds.device:.0f} s ({report.seconds.device / 60:.1f} "
           "minutes).</p>")
    yield f"<p class='soft'>{escape(report.protocol.text)}</p>"
    yield _missing(report.missing)
    links = "".join(f"<li><a href='#{escape(one.name)}'>{escape(one.title)}</a></li>" for one in report.operators)
    yield f"<nav aria-label='Operators'><ul>{links}</ul></nav></header>"


def _missing(sentences: Sequence[str]) -> str:
    """What was not measured: as it is while it is short, folded under its number once it would push the rest away."""
    if len(sentences) < FOLDED:
        return "".join(f"<p class='bad'>{escape(sentence)}</p>" for sentence in sentences)
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    return (f"<details><summary class='bad'>{len(sentences)} parts of this report are missing</summary>"
            f"<ul>{items}</ul></details>")


def _overview(report: Report) -> Iterator[str]:
    yield "<h2>Against the best library</h2><section class='card'>"
    yield _plot(plots.best_pairs(report.operators), "Time of the best library over our fastest kernel, with 95 % "
                "intervals; right of the line ours is faster.")
    if any(operator.best for operator in report.operators):
        yield tables.best_table(report.operators)
    yield "</section>"
    if report.figures:
        yield f"<h2>Figures asked for</h2><section class='card'>{tables.figures_table(report.figures)}</section>"
    if report.means:
        yield f"<section class='card'>{tables.means_table(report.means)}</section>"


def _operator(operator: ReportOperator) -> Iterator[str]:
    yield f"<h2 id='{escape(operator.name)}'>{escape(operator.title)}</h2><section class='card'>"
    yield f"<p class='soft'>{escape(operator.name)} version {escape(operator.version)}, {escape(operator.dtype)}.</p>"
    yield _plot(plots.shares(operator), "Bars are medians, marks p10 to p90.")
    if operator.rows:
        yield tables.rows_table(operator)
    if operator.clocks:
        yield tables.clocks_table(operator)
    yield "<div class='plots'>"
    yield _plot(plots.curves(operator.campaigns, "evaluation"), "Agents by evaluations: best verified ratio so far.")
    yield _plot(plots.curves(operator.campaigns, "device_seconds"), "The same by seconds of the device.")
    yield _plot(plots.predictions(operator.campaigns), "Predicted and measured gain of every step that was timed.")
    yield "</div>"
    if operator.search is not None:
        yield tables.search_table(operator.search)
    for campaign in operator.campaigns:
        said = campaign.final.headline if campaign.final else ""
        yield (f"<h3>{escape(campaign.agent)} ({escape(campaign.label)})</h3><p>Grant {escape(str(campaign.grant))}, "
               f"{campaign.evaluations} evaluations in {campaign.seconds:.0f} s, the device held "
               f"{campaign.device_seconds:.0f} s. {escape(said)}</p><p class='soft'>{escape(campaign.cause)}</p>")
        yield ("<details><summary>Log, evaluations and predictions</summary>"
               f"{tables.campaign_tables(campaign)}</details>")
    for kernel in operator.kernels:
        yield _source(operator, kernel)
    yield "</section>"


def _source(operator: ReportOperator, kernel: ReportKernel) -> str:
    source = operator.sources.get(kernel.digest, "")
    baseline = next((one for one in operator.kernels if one.agent is None), None)
    text = source
    if baseline is not None and kernel.agent is not None:
        before = operator.sources.get(baseline.digest, "")
        text = "\n".join(difflib.unified_diff(before.splitlines(), source.splitlines(), "baseline", kernel.name,
                                              lineterm="")) or source
    tier = f", tier {kernel.tier} against the baseline" if kernel.tier else ""
    return (f"<details><summary>Kernel of {escape(kernel.name)}{escape(tier)} "
            f"<code>{escape(kernel.digest[7:19])}</code></summary><pre tabindex='0'>{escape(text)}</pre></details>")


def _plot(plot: plots.Plot | None, caption: str) -> str:
    if plot is None:
        return ""
    data = escape(json.dumps(plot), quote=True)
    words = escape(caption, quote=True)
    return (f"<figure><div class='plot' role='img' aria-label='{words}' data-plot=\"{data}\"></div>"
            f"<figcaption>{escape(caption)} The table holds the same numbers.</figcaption></figure>")


def _end(report: Report) -> Iterator[str]:
    environment = report.environment
    facts = {"CPU": environment.cpu, "GPU": environment.gpu, "Driver": environment.driver, "Python": environment.python,
             **report.versions}
    rows = [[escape(name), escape(str(value))] for name, value in facts.items() if value]
    roofs = [[escape(name), f"{value:.1f}"] for name, value in (report.roofs or {}).items()]
    yield "<h2>Machine and versions</h2><section class='card'>"
    yield tables.table("Versions", [("Name", False), ("Version", False)], rows)
    if roofs:
        yield tables.table("Measured roofs", [("Roof (unit in its name)", False), ("Rate", True)], roofs)
    yield "</section>"
