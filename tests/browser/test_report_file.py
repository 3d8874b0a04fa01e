"""The report as a file in a browser: every plot is drawn in both themes, nothing is fetched, nothing complains."""

from __future__ import annotations

from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect

from harness.domain.codec import from_document, schema
from harness.domain.report import Report
from harness.report.page import page as page_of

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(page_of(from_document(schema("report")["examples"][0], Report)), "utf-8")
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_plot_is_drawn_and_nothing_is_fetched(browser: Browser, stored: Path, scheme: str) -> None:
    context = browser.new_context(color_scheme=scheme, viewport={"width": 1280, "height": 900})  # type: ignore[arg-type]
    page = context.new_page()
    said: list[str] = []
    fetched: list[str] = []
    page.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: fetched.append(request.url))
    page.goto(stored.as_uri())
    plots = page.locator(".plot")
    assert plots.count() >= 3
    for number in range(plots.count()):
        plots.nth(number).scroll_into_view_if_needed()
        expect(plots.nth(number).locator("svg.main-svg").first).to_be_visible()
    for summary in page.locator("summary").all():
        summary.click()
    expect(page.locator("table caption").first).to_be_visible()
    assert not said
    assert [url for url in fetched if not url.startswith(("data:", "blob:"))] == [stored.as_uri()]
    found = Axe().run(page, options={"resultTypes": ["violations"]})
    assert found.violations_count == 0, found.generate_report()
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Light or dark").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before
    context.close()


def test_without_scripts_the_tables_hold_everything(browser: Browser, stored: Path) -> None:
    context = browser.new_context(java_script_enabled=False, viewport={"width": 375, "height": 800})
    page = context.new_page()
    page.goto(stored.as_uri())
    expect(page.get_by_role("table", name="Figures asked for")).to_be_visible()
    expect(page.get_by_text("liger-kernel is not installed here.").first).to_be_visible()
    context.close()
