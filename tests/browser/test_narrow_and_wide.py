"""Parts of pages at the widths of a phone and of a desk, without a server: rendered, styled and measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.template.loader import render_to_string
from playwright.sync_api import Browser, Page

from apps.campaigns.screens.budget import NAMES, Meter

pytestmark = pytest.mark.browser
STATIC = Path(__file__).parents[2] / "static"
SHEETS = ("tokens", "app", "pages", "agent", "scroll")
PHONE, DESK = 390, 1400
METERS = [
    Meter("Rounds", 12, 20, "rounds"), Meter("Evaluations", 41, 60, "runs"), Meter("Time running", 23_760, 43_200, "s"),
    Meter("Tokens", 122_345, 2_000_000, "tokens"), Meter("Turns", 36, 40, "turns"), Meter("Money", 7.31, 12, "USD"),
]
LINES = "nodes => new Set(nodes.map(node => Math.round(node.getBoundingClientRect().top))).size"
SEEN = """node => {
  const mine = node.getBoundingClientRect(), place = node.parentElement.getBoundingClientRect();
  return mine.left >= place.left - 1 && mine.right <= place.right + 1;
}"""


@pytest.fixture
def at(browser: Browser) -> Iterator[Callable[..., Page]]:
    """``at(width, html)`` shows a part of a page with the product's sheets."""
    pages = []
    styles = "".join((STATIC / "css" / f"{name}.css").read_text("utf-8") for name in SHEETS)

    def show(width: int, html: str, *scripts: str) -> Page:
        page = browser.new_page(viewport={"width": width, "height": 900})
        pages.append(page)
        code = "".join((STATIC / "js" / name).read_text("utf-8") for name in scripts)
        page.set_content(f"<html class=js><head><style>{styles}</style><script>{code}</script></head>"
                         f"<body><main class=page>{html}</main></body></html>")
        return page

    yield show
    for page in pages:
        page.close()


def budget(meters: list[Meter]) -> str:
    """The strip's half of the goal card."""
    campaign = SimpleNamespace(goal={"stop": {"plateau_rounds": 3}})
    request = SimpleNamespace(path="/campaigns/1/")
    part = render_to_string("campaigns/parts/budget.html", {"meters": meters, "campaign": campaign, "request": request})
    return f'<section class="card"><div class="halves"><div></div>{part}</div></section>'


def test_all_kinds_of_budget_stand_on_one_line_of_a_desk_and_wrap_on_a_phone(at: Callable[..., Page]) -> None:
    assert len(METERS) == len(NAMES)
    assert at(DESK, budget(METERS)).locator(".meters > div").evaluate_all(LINES) == 1
    phone = at(PHONE, budget(METERS))
    assert phone.locator(".meters > div").evaluate_all(LINES) > 1
    assert not phone.evaluate("document.documentElement.scrollWidth > innerWidth")
    bars = phone.locator(".meters > div").evaluate_all(
        "nodes => nodes.every(node => Math.abs(node.querySelector('.bar').clientWidth - node.clientWidth) < 2)")
    assert bars, "a bar is as long as its meter is wide"


def test_a_phone_shows_the_stage_that_runs_and_leaves_the_reader_where_they_scrolled(at: Callable[..., Page]) -> None:
    def steps(now: str) -> str:
        return "".join(f'<li data-stage="{name}"{" aria-current=step" if name == now else ""}><i class="i"></i>'
                       f'<b>{name}</b></li>' for name in "abcdefghijkl")

    page = at(PHONE, f'<section class="card"><ol class="stepper" tabindex="0">{steps("i")}</ol></section>', "scroll.js")
    page.wait_for_selector(".stepper[data-more='start end']")
    assert page.locator("[data-stage=i]").evaluate(SEEN)
    page.evaluate("document.querySelector('.stepper').scrollLeft = 0")
    page.evaluate("document.querySelector('[data-stage=i]').append(' 3 s')")
    page.wait_for_selector(".stepper[data-more=end]")
    assert not page.locator("[data-stage=i]").evaluate(SEEN), "the same stage pulls nobody back"
    page.evaluate("""() => { document.querySelector("[data-stage=i]").removeAttribute("aria-current");
                             document.querySelector("[data-stage=j]").setAttribute("aria-current", "step"); }""")
    page.wait_for_selector(".stepper[data-more='start end']")
    assert page.locator("[data-stage=j]").evaluate(SEEN)


TABLE = """<section class="card"><div class="scroll"><table class="table stack"><caption>What the rows mean.</caption>
<thead><tr><th>Round</th><th>Tokens</th></tr></thead>
<tbody><tr><th scope="row" data-l="Round">1</th><td data-l="Tokens">12</td></tr></tbody></table></div></section>"""


def test_the_menu_shows_where_one_is_and_leaves_the_page_where_it_was_opened(at: Callable[..., Page]) -> None:
    """A page that opens at an anchor or at a field with the focus is scrolled before the menu is."""
    links = "".join(f'<a href="#"{" aria-current=page" if name == "System" else ""}>{name}</a>'
                    for name in ("Campaigns", "Reviews", "Operators", "Leaderboards", "System"))
    page = at(PHONE, f'<header class="topbar"><nav class="nav">{links}</nav></header><div style="height:3000px"></div>'
                     '<script>scrollTo(0, 700)</script>', "scroll.js")
    page.wait_for_selector(".nav[data-more=start]")
    assert page.locator("[aria-current]").evaluate(SEEN)
    assert page.evaluate("scrollY") == 700


def test_cards_of_a_phone_name_their_first_cell_and_explain_themselves_at_the_end(at: Callable[..., Page]) -> None:
    phone = at(PHONE, TABLE)
    rows, caption = phone.locator("tbody tr").bounding_box(), phone.locator("caption").bounding_box()
    assert rows and caption and caption["y"] >= rows["y"] + rows["height"] - 1
    word: Any = phone.locator("tbody th").evaluate("node => getComputedStyle(node, '::before').content")
    assert word == '"Round"'


COVERED = """() => {
  const bar = document.querySelector(".decision").getBoundingClientRect();
  return document.activeElement.getBoundingClientRect().bottom > bar.top;
}"""


def test_what_has_the_focus_is_never_below_the_decision_bar_of_a_phone(at: Callable[..., Page]) -> None:
    links = "".join(f'<p><a href="#{place}">line {place}</a></p>' for place in range(60))
    acts = "".join(f'<button class="btn">{word}</button>' for word in
                   ("Comment", "Request changes", "Reject", "Veto", "Approve"))
    page = at(PHONE, f"""{links}<div class="decision"><form><p class="at-stake"><span><b>3.303×</b> over it</span></p>
      <textarea rows="1"></textarea><div class="acts">{acts}</div>
      <p class="reason">1 approval missing; you may give one. Promotion starts with the last one.</p></form></div>""")
    covered = []
    for place in range(60):
        page.keyboard.press("Tab")
        if page.evaluate(COVERED):
            covered.append(place)
    assert covered == []


HEAD = """<div class="page-head"><div><h1>A campaign</h1></div><div class="row"><button class="btn">Pause</button>
<details class="menu right"><summary class="btn bad">Stop…</summary><ul><li><form class="pad col"><label for="why">Why?
Kept in the audit trail.</label><textarea id="why"></textarea><button class="btn bad">Stop it</button></form></li></ul>
</details><a class="btn quiet" href="#">Fork…</a></div></div>"""
INSIDE = """node => {
  const box = node.getBoundingClientRect();
  return box.left >= 0 && box.right <= innerWidth && document.documentElement.scrollWidth <= innerWidth;
}"""


@pytest.mark.parametrize("width", [320, PHONE, 700, DESK])
def test_what_a_menu_of_the_page_opens_stays_in_the_window(at: Callable[..., Page], width: int) -> None:
    page = at(width, HEAD)
    page.click("summary")
    assert page.locator(".menu > ul").evaluate(INSIDE)
    page.click("text=Stop it", trial=True)


@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("width", [320, PHONE, DESK])
def test_the_menus_of_the_top_bar_open_inside_the_window(at: Callable[..., Page], width: int, live: bool) -> None:
    team = SimpleNamespace(name="Inference Core", slug="inference-core")
    bar = render_to_string("core/partials/topbar.html", {
        "person": SimpleNamespace(name="Rosa Reviewer"), "roles": ["reviewer"], "team": team, "live": live,
        "teams": [SimpleNamespace(team=team, roles=["reviewer"])], "may_audit": True,
        "nav": [{"href": "/", "word": word} for word in ("Campaigns", "Reviews", "Operators", "Leaderboards")]})
    page = at(width, bar)
    for menu in page.locator(".topbar .menu").all():
        menu.locator("summary").click()
        assert menu.locator("> ul").evaluate(INSIDE)
        menu.locator("summary").click()


THREAD = """<section class="thread"><footer><details class="more"><summary>Reply</summary><form class="col">
<textarea rows="2"></textarea></form></details><span class="push small muted">Only she resolves it.</span></footer>
</section>"""


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_a_reply_has_the_width_of_its_thread(at: Callable[..., Page], width: int) -> None:
    page = at(width, THREAD)
    page.click("summary")
    assert page.evaluate("document.querySelector('textarea').offsetWidth > 0.9 * "
                         "(document.querySelector('.thread').clientWidth - 24)")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_figures_at_the_decision_fit_a_phone(at: Callable[..., Page], theme: str) -> None:
    bar = ('<div class="decision"><form><p class="at-stake"><span><b>3.303×</b> '
           '<span class="rest">[3.160, 3.595]</span> over the baseline</span><span class="tier">medium</span>'
           '<span class="rest">37 of 37 cases</span>'
           '<span>0 of 5 tabs seen</span></p></form></div>')
    phone = at(PHONE, bar)
    phone.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    assert phone.locator(".at-stake > span:visible").evaluate_all(LINES) == 1
    assert at(DESK, bar).locator(".at-stake .rest").first.is_visible()
