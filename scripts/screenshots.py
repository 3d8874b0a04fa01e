"""Pictures of every page, light and dark, wide and narrow, with the accessibility violations that axe finds.

Runs against a server that is up (``make run``): ``scripts/screenshots.py --url http://127.0.0.1:8000``. It signs
in as one of the demo people (``--as Rosa`` says whom; or with ``--user`` and ``--password``), finds one page of each
kind by following links, and writes ``<out>/<page>-<width>-<theme>.png``. Exit 1 when axe or the browser's console
reports something, when a page is wider than the window, or when a menu opens outside of it.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = "/usr/bin/chromium"
FIXED = {
    "home": "/",
    "campaigns": "/campaigns/",
    "campaign-new": "/campaigns/new/",
    "compare": "/campaigns/compare/",
    "reviews": "/reviews/",
    "operators": "/operators/",
    "leaderboards": "/leaderboards/",
    "system": "/system/",
    "hardware": "/hardware/",
    "audit": "/audit/",
    "troubleshooting": "/docs/troubleshooting/",
    "entry": "/docs/troubleshooting/incorrect_numeric/",
    "not-found": "/campaigns/999999/",
}
FOUND = {
    "campaign": r"^/campaigns/\d+/$",
    "round": r"^/campaigns/\d+/rounds/[1-9]\d*/$",
    "review": r"^/reviews/\d+/$",
    "kernel": r"^/kernels/[0-9a-f]+/$",
    "verdict": r"^/verdicts/\d+/$",
    "operator": r"^/operators/[^/]+/$",
    "slot": r"^/operators/[^/]+/[^/]+/[^/]+/[^/]+/$",
    "imported-report": r"^/leaderboards/imported/\d+/$",
    "imported-board": r"^/leaderboards/[^/]+/imported/\d+/$",
    "board": r"^/leaderboards/(?!imported/)[^/]+/(\?|$)",
    "device": r"^/hardware/[^/]+/$",
    "team": r"^/teams/[^/]+/$",
}
SIZES = {"1440": {"width": 1440, "height": 1000}, "390": {"width": 390, "height": 844}}
THEMES = ("light", "dark")
EXPECTED = {"not-found": "404", "audit": "403"}  # what the console says of them; the trail is not for engineers
SCROLL_PX = 700  # charts are drawn once they come into view


def sign_in(page: Page, url: str, user: str, password: str, person: str) -> None:
    """With a name and password, or with one click as ``person`` of the demo, the first one by default."""
    page.goto(url + "/accounts/sign-in/")
    if user:
        page.fill("#username", user)
        page.fill("#password", password)
        page.click("text=Sign in >> nth=-1")
    else:
        page.click(f"button[name=demo]:has-text({person!r}) >> nth=0" if person else "button[name=demo] >> nth=0")
    page.wait_for_url(lambda address: "sign-in" not in address)


def discover(page: Page, url: str) -> dict[str, str]:
    """One address of each kind, found breadth first from the fixed pages; newer ones first."""
    found: dict[str, str] = {}
    queue = list(FIXED.values())
    seen = set(queue)
    while queue and len(found) < len(FOUND) and len(seen) < 60:
        page.goto(url + queue.pop(0))
        links = page.eval_on_selector_all("a[href]", "nodes => nodes.map(node => node.getAttribute('href'))")
        for link in links:
            for name, pattern in FOUND.items():
                if name not in found and re.match(pattern, link):
                    found[name] = link
                    if link not in seen:
                        seen.add(link)
                        queue.append(link)
    return found


def visits(browser: Browser, state: Any, pages: dict[str, str], url: str) -> Iterator[tuple[str, Page, list[str]]]:
    """Every page in every size and theme, with what the console said."""
    for size, viewport in SIZES.items():
        for theme in THEMES:
            context = browser.new_context(viewport=viewport, color_scheme=theme, storage_state=state)  # type: ignore[arg-type]
            page = context.new_page()
            said: list[str] = []
            page.on(
                "console", lambda message, said=said: said.append(message.text) if message.type == "error" else None
            )
            page.on("pageerror", lambda error, said=said: said.append(str(error)))
            for name, path in pages.items():
                said.clear()
                page.goto(url + path, wait_until="load")
                for place in range(0, page.evaluate("document.documentElement.scrollHeight"), SCROLL_PX):
                    page.evaluate(f"scrollTo(0, {place})")
                    page.wait_for_timeout(80)
                page.wait_for_timeout(400)
                page.evaluate("scrollTo(0, 0)")
                page.wait_for_timeout(300)
                yield (
                    f"{name}-{size}-{theme}",
                    page,
                    [text for text in said if EXPECTED.get(name, "none") not in text],
                )
            context.close()


MENUS_OUTSIDE = """() => [...document.querySelectorAll("details.menu")].filter((menu) => {
  menu.open = true;
  const box = menu.querySelector(":scope > ul")?.getBoundingClientRect();
  menu.open = false;
  return box && (box.left < -1 || box.right > innerWidth + 1);
}).map((menu) => menu.querySelector("summary").textContent)"""


def problems_of(page: Page) -> list[str]:
    """Axe's violations as lines, and a sideways overflow of the page itself."""
    found = [
        f"axe {row['id']}: {row['help']} ({len(row['nodes'])}): {row['nodes'][0]['html'][:120]}"
        for row in Axe().run(page).response["violations"]
    ]
    if page.evaluate("document.documentElement.scrollWidth > window.innerWidth + 1"):
        found.append("the page is wider than the window")
    return found + [f"the menu '{name.strip()}' opens outside of the window" for name in page.evaluate(MENUS_OUTSIDE)]


def main() -> int:
    """Take the pictures and print what is wrong."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--url", default="http://127.0.0.1:8000")
    options.add_argument("--user", default="")
    options.add_argument("--password", default="")
    options.add_argument("--as", dest="person", default="", help="which demo person, by a part of the name")
    options.add_argument("--out", type=Path, default=Path("out/screens"))
    options.add_argument("--only", default="", help="names of pages, comma-separated")
    options.add_argument("--page", action="append", default=[], metavar="NAME=PATH", help="one more page; may repeat")
    given = options.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    wrong = 0
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        sign_in(page, given.url, given.user, given.password, given.person)
        wanted = set(given.only.split(",")) - {entry.split("=", 1)[0] for entry in given.page}
        found = discover(page, given.url) if not given.only or wanted & set(FOUND) else {}
        pages = {"sign-in": "/accounts/sign-in/", **FIXED, **found}
        pages |= dict(entry.split("=", 1) for entry in given.page)
        if given.only:
            pages = {name: path for name, path in pages.items() if name in given.only.split(",")}
        state = page.context.storage_state()
        for name, shown, said in visits(browser, state, pages, given.url):
            shown.screenshot(path=str(given.out / f"{name}.png"), full_page=True)
            lines = problems_of(shown) + [f"console: {text}" for text in said]
            wrong += len(lines)
            print(f"{name:32} {shown.url.removeprefix(given.url)}")
            for line in lines:
                print(f"    {line}")
        browser.close()
    print(f"{wrong} problems")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
