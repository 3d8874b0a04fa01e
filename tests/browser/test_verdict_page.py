"""The verdict page as people use it: where it failed, one case opened, the samples as a file, without JavaScript."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.conftest import PROJECT, Site
from tests.browser.verdicts import WRONG_LINE

pytestmark = pytest.mark.browser
Enter = Callable[..., Page]


@pytest.fixture(scope="module")
def site(quick_site: Site) -> Site:
    """Nothing is evaluated here."""
    return quick_site


def made_in(site: Site, module: str) -> bytes:
    """What a module prints that writes into the site's database."""
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "kernelopt_site.settings.base", "KERNELOPT_VAR": str(site.folder),
        "KERNELOPT_SQLITE": str(site.folder / "kernelopt.sqlite3"), "KERNELOPT_DEMO": "0"}
    return subprocess.run([sys.executable, "-m", module], cwd=PROJECT, env=environment, check=True,
                          stdout=subprocess.PIPE).stdout


@pytest.fixture(scope="module")
def verdicts(site: Site) -> dict[str, int]:
    """Numbers of a passed and a wrong verdict."""
    found: dict[str, int] = json.loads(made_in(site, "tests.browser.verdicts"))
    return found


@pytest.fixture(scope="module")
def imported(site: Site) -> int:
    """Number of an imported report."""
    return int(made_in(site, "tests.browser.reports"))


def test_from_a_failure_to_its_line_and_case(verdicts: dict[str, int], as_person: Enter) -> None:
    page = as_person("emma")
    page.goto(f"/verdicts/{verdicts['wrong']}/")
    failure = page.locator(".failure")
    expect(failure).to_contain_text("The last columns are wrong.")
    expect(failure).to_contain_text("left over after the last full block")
    failure.locator(f"a:has-text('Line {WRONG_LINE}')").click()
    line = page.locator(f"#L{WRONG_LINE}")
    expect(line).to_be_in_viewport()
    assert "flagged" in (line.get_attribute("class") or "")
    page.locator(".failure a[href='#case-1']").click()
    expect(page.locator("#case-1")).to_be_in_viewport()
    expect(page.locator("#case-1")).to_contain_text("failed")


def test_a_case_opens_and_tells_its_bounds(verdicts: dict[str, int], as_person: Enter) -> None:
    page = as_person("emma")
    page.goto(f"/verdicts/{verdicts['passed']}/")
    row = page.locator("#case-1")
    expect(row.locator("dl")).not_to_be_visible()
    row.locator("summary").click()
    expect(row.locator("dl")).to_contain_text("Ceiling (R4)")
    expect(row.locator("dl")).to_contain_text("applied: what sums in any order")
    expect(row.locator("svg.scale")).to_be_visible()
    assert Axe().run(page).response["violations"] == []


def test_the_samples_are_a_file(verdicts: dict[str, int], as_person: Enter) -> None:
    page = as_person("emma")
    page.goto(f"/verdicts/{verdicts['passed']}/")
    with page.expect_download() as download:
        page.click("text=Samples, CSV")
    assert download.value.suggested_filename.endswith("samples.csv")
    with Path(download.value.path()).open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["kind"] for row in rows} == {"paired", "control"}
    assert all(float(row["other_us"]) > 0 and float(row["candidate_us"]) > 0 for row in rows)


def test_without_javascript_everything_is_there_to_read(verdicts: dict[str, int], as_person: Enter) -> None:
    page = as_person("emma", java_script_enabled=False, viewport={"width": 390, "height": 844})
    page.goto(f"/verdicts/{verdicts['passed']}/")
    for words in ("round 1", "A/A 1", "cols=1021", "Held against the judge", "level 3", "Samples, JSON"):
        expect(page.locator("main")).to_contain_text(words)
    expect(page.locator(".pairs svg").first).to_be_visible()
    page.locator("#case-1 summary").click()
    expect(page.locator("#case-1 dl")).to_contain_text("Ceiling (R4)")


def test_a_stranger_gets_neither_page_nor_file(verdicts: dict[str, int], as_person: Enter) -> None:
    page = as_person("sten")
    for path in ("", "samples.csv", "samples.json", "verdict.json"):
        response = page.goto(f"/verdicts/{verdicts['passed']}/{path}")
        assert response is not None and response.status == 404, path


@pytest.mark.parametrize(("width", "theme"), [(1440, "light"), (390, "dark")])
def test_imported_boards_and_device_pages_have_no_violation(
    imported: int, as_person: Enter, width: int, theme: str
) -> None:
    page = as_person("vera", viewport={"width": width, "height": 900}, color_scheme=theme)
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    for path in (f"/leaderboards/softmax/imported/{imported}/", f"/leaderboards/imported/{imported}/",
                 "/leaderboards/", "/operators/", "/hardware/", "/hardware/nvidia-h200/"):
        page.goto(path)
        assert Axe().run(page).response["violations"] == [], path
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth + 1"), path
    assert said == []


def test_an_imported_board_draws_its_curves_and_says_where_it_is_from(imported: int, as_person: Enter) -> None:
    page = as_person("vera")
    page.goto("/leaderboards/")
    page.click("main a:has-text('softmax')")
    expect(page.locator("main")).to_contain_text("Imported, measured elsewhere.")
    page.locator("#chart-curves").scroll_into_view_if_needed()
    expect(page.locator("#chart-curves svg").first).to_be_visible()
    expect(page.locator("#chart-curves")).to_contain_text("autotune 1.150×")
    page.click("text=seconds the device was held")
    expect(page.locator("#chart-curves")).to_contain_text("seconds the device was held")
    page.click("table a:has-text('V-') >> nth=0")
    expect(page.locator("main")).to_contain_text("Made elsewhere.")


def test_a_table_that_goes_on_beyond_a_narrow_page_says_so_and_scrolls_by_keyboard(
    imported: int, as_person: Enter
) -> None:
    page = as_person("vera", viewport={"width": 390, "height": 844})
    page.goto(f"/leaderboards/imported/{imported}/")
    operators = page.get_by_role("group", name="Operators, scrolls sideways when narrow")
    assert operators.evaluate("node => node.scrollWidth <= node.clientWidth")  # it fits
    expect(operators).not_to_have_attribute("data-more", "end")
    page.goto(f"/leaderboards/softmax/imported/{imported}/")
    name = page.locator("nav .boards h3").first
    assert name.evaluate("node => node.getClientRects().length === 1 && node.scrollWidth <= node.clientWidth")
    assert name.evaluate("node => getComputedStyle(node).whiteSpace") == "nowrap"
    rows = page.get_by_role("group", name="Rows of").first
    expect(rows).to_have_attribute("data-more", "end")
    rows.focus()
    rows.press("ArrowRight")
    expect(rows).to_have_attribute("data-more", "start end")
