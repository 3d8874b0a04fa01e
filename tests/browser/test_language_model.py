"""A campaign of a language model as a person sees it: chosen in the form, watched while it answers, stopped, steered,
and read afterwards. The model is the project's own scripted server; times are invented by a stand-in."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from harness.agents.llm.scripted.server import ScriptedServer
from tests.browser.conftest import PROJECT, Site

pytestmark = pytest.mark.browser

WAIT_MS = 60_000
HINT = "The last dimension is contiguous <b>always</b>: read 16 bytes at a time."
SETTINGS = """
[endpoint.scripted]
url = "{url}"
models = ["slow", "good", "injecting"]
price.slow = {{input = 1.0, output = 4.0, currency = "USD", date = "2026-11-01"}}
price.good = {{input = 1.0, output = 4.0, currency = "USD", date = "2026-11-01"}}
"""
Enter = Callable[..., Page]


@pytest.fixture(scope="module")
def site(quick_site: Site) -> Iterator[Site]:
    """Nothing is timed here. The site's settings name one endpoint: the scripted server in this process."""
    with ScriptedServer(0, None) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        settings = quick_site.folder / "endpoints.toml"
        settings.write_text(SETTINGS.format(url=server.url), "utf-8")
        yield quick_site
        settings.unlink()
        server.shutdown()


def clean(page: Page) -> list[str]:
    """What the console complains about from now on."""
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    return said


def test_a_model_is_chosen_watched_stopped_steered_and_read(site: Site, as_person: Enter) -> None:
    emma = as_person("emma")
    wrong = clean(emma)
    emma.goto("/campaigns/new/")
    emma.click(".choice:has([value=heavy]) .head")
    expect(emma.locator(".llm-only")).to_be_hidden()
    emma.check("[name='agent.kind'][value=openai]")
    expect(emma.locator("#f-agent-endpoint option")).to_have_text(["scripted"])
    expect(emma.locator("#f-agent-model option")).to_have_text(["slow", "good", "injecting"])
    expect(emma.locator("#preview")).to_contain_text("It asks slow at scripted. 1\u202fUSD in")
    emma.fill("[name='budget.rounds']", "2")
    emma.fill("[name='budget.turns']", "60")
    expect(emma.locator("#preview")).to_contain_text("60 turns of the model")
    emma.click("button:has-text('Start campaign')")
    emma.wait_for_url(re.compile(r"/campaigns/\d+/$"))

    # The answer appears on the open page while it comes in, and is announced in words.
    live = emma.locator("[data-answers] article")
    expect(live).to_be_visible(timeout=WAIT_MS)
    expect(live.locator("pre").first).not_to_be_empty(timeout=WAIT_MS)
    expect(emma.locator("[data-answer-says]")).to_contain_text("Round 1", timeout=WAIT_MS)
    before = live.locator(".muted").inner_text()
    expect(live.locator(".muted")).not_to_have_text(before, timeout=WAIT_MS)

    # Stopped, nothing is counted; the campaign waits and says who did it.
    emma.click("button:has-text('Stop this answer')")
    expect(emma.locator("main")).to_contain_text("Emma stopped the model's answer", timeout=WAIT_MS)
    expect(emma.locator("#agent [aria-label='stopped by a person']").first).to_be_visible(timeout=WAIT_MS)
    expect(live).to_have_count(0)

    # Steered: what was said stands there with the name, as text.
    emma.click("#steer-hint summary")
    emma.fill("#hint-text", HINT)
    emma.click("button:has-text('Give the hint')")
    expect(emma.locator(".steered")).to_contain_text(f"Emma gave a hint: {HINT}")
    emma.click("#steer-forbid summary")
    emma.select_option("#forbid-direction", "precision")
    emma.click("button:has-text('Forbid it')")
    expect(emma.locator("#agent")).to_contain_text("precision is forbidden by Emma")
    emma.click("#steer-model summary")
    emma.select_option("#model-choice", "scripted\tgood\t")
    emma.click("button:has-text('Change it')")
    expect(emma.locator("#agent header")).to_contain_text("good at scripted")
    emma.click("button:has-text('Resume')")

    # The other model goes on, and the round's page has the whole conversation.
    expect(emma.locator("[data-feed]")).to_contain_text("Round 1 measured", timeout=WAIT_MS)
    number = emma.url.rstrip("/").rpartition("/")[2]
    assert Axe().run(emma).response["violations"] == []
    emma.goto(f"/campaigns/{number}/rounds/1/")
    talk = emma.locator("#transcript")
    expect(talk).to_contain_text("slow at scripted, good at scripted")
    expect(talk).to_contain_text("submit_candidate")
    expect(talk).to_contain_text("query_log")
    expect(talk.locator("pre:has-text('16 bytes at a time')").first).to_be_attached()
    expect(talk.locator("b:has-text('always')")).to_have_count(0)
    assert Axe().run(emma).response["violations"] == []
    with emma.expect_download() as download:
        emma.click("text=Raw JSON")
    assert download.value.suggested_filename == f"campaign-{number}-round-1-turns.json"

    # The export plays again without the server and without a network, and proposes the same.
    talk.locator("summary:has-text('Replay without a network')").click()
    with emma.expect_download() as download:
        emma.click("text=for a replay")
    with zipfile.ZipFile(download.value.path()) as archive:
        archive.extractall(site.folder)
    again = subprocess.run([sys.executable, "-m", "harness", "replay", str(site.folder / f"campaign-{number}")],
                           cwd=PROJECT, capture_output=True, text=True, check=False)
    assert again.returncode == 0 and "candidate for" in again.stdout, again.stdout + again.stderr
    assert wrong == []

    # Somebody who may only look sees the same pages, narrow and wide, light and dark.
    for width, theme in ((1400, "dark"), (390, "light")):
        vera = as_person("vera", viewport={"width": width, "height": 900}, color_scheme=theme)
        for path in (f"/campaigns/{number}/", f"/campaigns/{number}/rounds/1/", "/system/", "/campaigns/new/"):
            vera.goto(path)
            if path.endswith("/new/"):
                vera.locator("[name='agent.kind'][value=openai]").check()
            assert Axe().run(vera).response["violations"] == [], path
            assert vera.evaluate("document.documentElement.scrollWidth <= window.innerWidth + 1"), path
        vera.goto("/system/")
        expect(vera.locator("#endpoints")).to_contain_text("answers")
