"""The campaign page while it is open: it follows the rounds without a reload and keeps what the reader did."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Site

pytestmark = pytest.mark.browser

ROUND_MS = 30_000
RANGE = "() => document.querySelector('#chart-speedup .chart-canvas')._fullLayout.xaxis.range"
MARKS = "#chart-speedup .chart-canvas svg .scatterlayer path.point"
Enter = Callable[..., Page]


@pytest.fixture(scope="module")
def site(quick_site: Site) -> Site:
    """Nothing is timed here."""
    return quick_site


def zoom(page: Page) -> list[float]:
    """Drag over the middle of the plot; the range that is then shown."""
    plot = page.locator("#chart-speedup .nsewdrag").first
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.2, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.7, middle, steps=5)
    page.mouse.up()
    page.wait_for_function(f"({RANGE})()[0] > -0.3")
    return list(page.evaluate(RANGE))


def test_an_open_page_draws_follows_and_keeps(as_person: Enter) -> None:
    emma = as_person("emma")
    wrong: list[str] = []
    emma.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    emma.on("pageerror", lambda error: wrong.append(str(error)))
    emma.goto("/campaigns/new/")
    emma.check("[name=grant][value=medium]")
    emma.fill("[name='budget.rounds']", "3")
    expect(emma.locator("#preview")).to_contain_text("3 rounds")
    emma.click("button:has-text('Start campaign')")
    emma.wait_for_url(re.compile(r"/campaigns/\d+/$"))
    emma.evaluate("() => { window.sameDocument = true; }")

    # Opened before the first verdict, the page draws the plot once there is something to draw.
    expect(emma.locator("#chart-speedup")).to_be_attached(timeout=ROUND_MS)
    emma.locator("#plot-h").scroll_into_view_if_needed()
    expect(emma.locator(MARKS).first).to_be_attached(timeout=ROUND_MS)

    # The next rounds are drawn into the same plot, and the reader's zoom stays.
    figure = emma.locator("#chart-speedup").get_attribute("data-figure")
    kept = zoom(emma)
    emma.wait_for_function("before => document.querySelector('#chart-speedup').dataset.figure !== before",
                           arg=figure, timeout=ROUND_MS)
    expect(emma.locator("main")).to_contain_text("waits for a person", timeout=3 * ROUND_MS)
    expect(emma.locator(MARKS).first).to_be_attached()
    assert emma.evaluate(RANGE) == pytest.approx(kept)

    # Nothing runs any more, so no stage says so; the feed counts what it lists.
    expect(emma.locator("[data-stepper]:not([data-open])")).to_be_attached()
    expect(emma.locator("[data-stepper] .on")).to_have_count(0)
    expect(emma.locator("[data-progress]")).to_have_text("")
    listed = emma.locator("[data-feed] li[data-seq]")
    expect(emma.locator("[data-feed-count]")).to_have_text(str(listed.count()))
    expect(emma.locator("[data-feed-head]")).to_have_text(listed.first.get_attribute("data-seq") or "")

    assert emma.evaluate("() => window.sameDocument") is True, "the page was loaded anew"
    assert wrong == []
