"""The main job as two people do it: start, watch, lose the connection, review, promote, rank. All real."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Site

pytestmark = pytest.mark.browser

CAMPAIGN_MS = 8 * 60_000
PROMOTION_MS = 5 * 60_000
Enter = Callable[..., Page]


def _reload_until(page: Page, url: str, text: str, milliseconds: int, log: Callable[[], str]) -> None:
    """Read a page again until it says ``text``: what a person without live updates would do."""
    deadline = time.monotonic() + milliseconds / 1000
    while time.monotonic() < deadline:
        page.goto(url)
        if page.locator("main").filter(has_text=text).count():
            return
        page.wait_for_timeout(1000)
    raise AssertionError(f"'{text}' did not appear on {url}\n{page.locator('main').inner_text()}\n{log()}")


def _numbers(page: Page) -> list[int]:
    """Sequence numbers in the feed, newest first."""
    return [int(text) for text in page.locator("[data-feed] li .seq").all_inner_texts() if text.strip().isdigit()]


def test_from_the_goal_form_to_the_champion(site: Site, as_person: Enter) -> None:
    emma = as_person("emma")
    emma.goto("/campaigns/new/")
    emma.check("[name=grant][value=medium]")
    emma.fill("[name='budget.rounds']", "1")
    expect(emma.locator("#preview")).to_contain_text("1 round")
    emma.click("button:has-text('Start campaign')")
    emma.wait_for_url(re.compile(r"/campaigns/\d+/$"))
    campaign = emma.url
    expect(emma.locator(".conn").first).to_contain_text("Live")

    # The first verdict arrives on the open page, without a reload.
    feed = emma.locator("[data-feed]")
    expect(feed).to_contain_text("measured", timeout=CAMPAIGN_MS)
    before = _numbers(emma)
    assert before and before == sorted(before, reverse=True)

    # The web process dies under the open page: the socket is cut, comes back, and nothing is missing.
    site.child("daphne").send_signal(signal.SIGKILL)
    expect(emma.locator(".conn").first).not_to_contain_text("Live", timeout=30_000)
    expect(emma.locator(".conn").first).to_contain_text(re.compile("Live|reconnected"), timeout=60_000)
    emma.reload()

    expect(emma.locator("main")).to_contain_text("waits for a person", timeout=CAMPAIGN_MS)
    numbers = _numbers(emma)
    assert numbers == list(range(numbers[0], numbers[0] - len(numbers), -1)), "a sequence number is missing or twice"
    emma.click("button:has-text('Accept and finish')")
    expect(emma.locator(".page-head")).to_contain_text("finished")

    # The request opens after a fresh measurement; its starter reads why she may not approve.
    _reload_until(emma, "/reviews/", "rms_norm", PROMOTION_MS, site.log)
    emma.click("main a:has-text('rms_norm')")
    emma.wait_for_url(re.compile(r"/reviews/\d+/$"))
    review = emma.url
    approve = emma.locator(".decision button:has-text('Approve')")
    expect(approve).to_have_attribute("aria-disabled", "true")
    expect(emma.locator(".decision")).to_contain_text(re.compile("contributor|reviewer"))

    # Another person comments on the change and approves it.
    rosa = as_person("rosa")
    rosa.goto("/")
    expect(rosa.locator("main")).to_contain_text("rms_norm")
    rosa.goto(review)
    expect(rosa.locator(".gate")).to_contain_text("0 of 1 approvals")
    rosa.fill(".decision textarea[name=comment]", "Reads well: one pass less over each row.")
    rosa.click(".decision button:has-text('Comment')")
    expect(rosa.locator("main")).to_contain_text("one pass less over each row")
    rosa.click(".decision button:has-text('Approve')")
    expect(rosa.locator("main")).to_contain_text(re.compile("1 of 1 approvals|verif|promoted", re.IGNORECASE))

    # Verified once more against the baseline, promoted, and a tag exists.
    _reload_until(rosa, review, "promoted", PROMOTION_MS, site.log)
    rosa.goto("/leaderboards/")
    rosa.click("main a:has-text('rms_norm')")
    expect(rosa.locator("main")).to_contain_text("Core")
    expect(rosa.locator("main table").first).to_contain_text("×")

    # The campaign page still has every event, in order, on a fresh read.
    emma.goto(campaign)
    expect(emma.locator(".page-head")).to_contain_text("finished")


def test_a_stranger_sees_nothing_of_it(site: Site, as_person: Enter) -> None:
    sten = as_person("sten")
    for path in ("/campaigns/1/", "/reviews/1/", "/teams/core/"):
        response = sten.goto(path)
        assert response is not None and response.status == 404, path


def test_a_contradictory_goal_is_refused_at_the_field(site: Site, as_person: Enter) -> None:
    emma = as_person("emma")
    emma.goto("/campaigns/new/")
    emma.fill("[name='weights.latency']", "0.9")
    expect(emma.locator("#preview")).to_contain_text("sum to")
    expect(emma.locator("button:has-text('Start campaign')")).to_have_attribute("aria-disabled", "true")
    field = emma.locator("[name='weights.latency']")
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(emma.locator(".field:has([name='weights.latency']) .err")).to_contain_text("sum to")
    emma.fill("[name='weights.latency']", "0.7")
    expect(emma.locator(".field .err")).to_have_count(0)
    expect(field).not_to_have_attribute("aria-invalid", "true")


def test_without_javascript_the_form_refuses_and_keeps_what_was_typed(site: Site, as_person: Enter) -> None:
    emma = as_person("emma", java_script_enabled=False)
    emma.goto("/campaigns/new/")
    emma.fill("[name='weights.latency']", "0.9")
    emma.click("button:has-text('Start campaign')")
    expect(emma.locator("main")).to_contain_text("sum to")
    expect(emma.locator("[name='weights.latency']")).to_have_value("0.9")
