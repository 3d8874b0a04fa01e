"""A self-contained page about a finished campaign: goal, headline, one table, one plot; no scripts, no network."""

from __future__ import annotations

import difflib
from html import escape

from harness.campaign.predicted import predicted_html, stated_predictions
from harness.domain.summary import VerdictSummary
from harness.domain.verdict import Ratio, Verdict
from harness.domain.vocabulary import Comparison, Role
from harness.engine.log import log_entries
from harness.engine.state import CampaignState, Round

STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#1d2733;background:#fff}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:.3rem .6rem;border-bottom:1px solid #d5dbe3;vertical-align:top}
td.n,th.n{text-align:right;white-space:nowrap}pre{background:#f3f5f8;padding:1rem;overflow:auto;font-size:13px}
.muted{color:#5a6675}svg{max-width:100%;height:auto}
@media (prefers-color-scheme:dark){body{color:#dbe3ec;background:#12171d}th,td{border-color:#303a46}
pre{background:#1a212a}.muted{color:#98a5b3}}
"""


def report(state: CampaignState, final: Verdict | None, label: str) -> str:
    """The page's HTML. ``final`` is the fresh paired measurement against the baseline, ``None`` where there is none."""
    goal = state.goal
    return "\n".join([
        "<!doctype html><html lang='en'><meta charset='utf-8'><meta name='viewport' content='width=device-width'>",
        f"<title>{escape(goal.operator)} on {escape(goal.hardware)}</title><style>{STYLE}</style>",
        f"<h1>{escape(goal.operator)} on {escape(goal.hardware)}</h1>",
        f"<p>{escape(str(goal.backend))}, workload {escape(goal.workload)}, grant {escape(str(state.grant))}, agent "
        f"{escape(goal.agent.kind)} ({escape(label)}), goal {escape(goal.digest[7:19])}.</p>",
        f"<p><strong>{escape(headline(state, final))}</strong></p>",
        f"<p class='muted'>{escape(state.cause)}</p>",
        "<h2>Speed-up over the baseline</h2>", _plot(state), "<h2>Log</h2>", _table(state),
        *predicted_html(stated_predictions(state)),
        "<h2>Final kernel against the baseline</h2>", f"<pre>{escape(_diff(state))}</pre></html>",
    ])


def headline(state: CampaignState, final: Verdict | None) -> str:
    """R19 in a sentence: the fresh measurement, or why there is none."""
    if state.baseline_verdict is not None and state.baseline_verdict.passed and not state.baseline_verdict.timed:
        return "Nothing was timed here, so no kernel can be called faster; the baseline stays the incumbent."
    if not state.improved:
        return "No candidate was verified faster than the baseline; it stays the best kernel."
    ratio = final.timing.overall.get(str(Role.BASELINE)) if final is not None and final.timing else None
    if final is None or ratio is None:
        return "The final kernel was not timed against the baseline."
    word = {Comparison.FASTER: "faster", Comparison.SLOWER: "slower"}.get(final.comparison, "cannot tell")
    return f"Final against baseline, measured afresh: {text_of(ratio)} ({word})."


def text_of(ratio: Ratio) -> str:
    """``1.31x [1.28, 1.33]``."""
    return f"{ratio.ratio:.3f}x [{ratio.low:.3f}, {ratio.high:.3f}]"


def _table(state: CampaignState) -> str:
    head = ("<table><thead><tr><th class='n'>Round</th><th>Direction</th><th>Change</th><th class='n'>Predicted</th>"
            "<th>Tier</th><th>Outcome</th><th class='n'>Against the incumbent</th><th>Conclusion</th></tr></thead>")
    rows = []
    for entry in log_entries(state):
        change = text_of(entry.performance_change) if entry.performance_change else "not timed"
        predicted = "" if entry.expected_gain is None else f"{entry.expected_gain:+.0%}"
        rows.append(
            f"<tr><td class='n'>{entry.round}</td><td>{escape(entry.direction)}</td><td>{escape(entry.change_summary)}"
            f"</td><td class='n'>{predicted}</td><td>{escape(str(entry.step_tier or '-'))}</td>"
            f"<td>{escape(str(entry.outcome))}</td><td class='n'>{change}</td><td>{escape(str(entry.conclusion))}"
            f"{', do not repeat' if entry.do_not_repeat else ''}</td></tr>")
    return f"{head}<tbody>{''.join(rows)}</tbody></table>"


def baseline_ratio(record: Round, state: CampaignState) -> Ratio | None:
    """The measured ratio of a round's kernel against the baseline, whatever role the baseline had in that round."""
    verdict: VerdictSummary | None = record.verdict
    if verdict is None:
        return None
    if record.opponent == state.baseline.digest:
        return verdict.ratio(Role.INCUMBENT) or verdict.ratio(Role.BASELINE)
    return verdict.ratio(Role.BASELINE)


def _plot(state: CampaignState) -> str:
    points = [(r.number, ratio, r) for r in state.rounds if (ratio := baseline_ratio(r, state)) is not None]
    if not points:
        return "<p>Nothing was timed.</p>"
    top = max(1.1, max(ratio.high for _, ratio, _ in points)) * 1.05
    last = max(number for number, _, _ in points)
    width, height, left, bottom = 720, 280, 46, 30

    def at(number: float, value: float) -> tuple[float, float]:
        return left + (number / (last + 0.5)) * (width - left - 10), (height - bottom) * (1 - value / top)

    x1, y1 = at(last + 0.5, 1.0)
    parts = [f"<line x1='{left}' y1='{y1:.1f}' x2='{x1:.1f}' y2='{y1:.1f}' stroke='currentColor' "
             "stroke-dasharray='4 4' opacity='.5'/>", f"<text x='4' y='{y1 + 4:.1f}'>1x</text>"]
    step = max(1, round(top / 5))
    for tick in range(step if step > 1 else 2, int(top) + 1, step):
        parts.append(f"<text x='4' y='{at(0, tick)[1] + 4:.1f}' opacity='.7'>{tick}x</text>")
    for number, ratio, record in points:
        x, y = at(number, ratio.ratio)
        low, high = at(number, ratio.low)[1], at(number, ratio.high)[1]
        fill = "#1f7a4d" if record.verdict is not None and record.verdict.faster else "none"
        parts.append(f"<line x1='{x:.1f}' y1='{low:.1f}' x2='{x:.1f}' y2='{high:.1f}' stroke='currentColor'/>"
                     f"<circle cx='{x:.1f}' cy='{y:.1f}' r='4.5' fill='{fill}' stroke='currentColor'>"
                     f"<title>round {number}: {text_of(ratio)}</title></circle>"
                     f"<text x='{x:.1f}' y='{height - 8}' text-anchor='middle'>{number}</text>")
    words = "Speed-up over the baseline by round, with 95 % intervals; filled marks became the incumbent"
    return (f"<svg viewBox='0 0 {width} {height}' role='img' aria-label='{words}' font-size='12' fill='currentColor'>"
            f"{''.join(parts)}</svg>"
            "<p class='muted'>Bars are 95 % intervals; filled marks were faster than their incumbent.</p>")


def _diff(state: CampaignState) -> str:
    lines = difflib.unified_diff(state.baseline.source.splitlines(), state.incumbent.kernel.source.splitlines(),
                                 "baseline", f"round {state.incumbent.round}", lineterm="")
    return "\n".join(lines) or "The baseline stays the best kernel."
