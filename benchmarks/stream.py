"""Delay between the commit of an event and its arrival on an open page, through the real server and browser.

Run from the repository root: ``python benchmarks/stream.py [--repeat N]``. Uses a temporary folder and a free port.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(Path(__file__).parent), str(PROJECT)]
FOLDER = tempfile.mkdtemp(prefix="kernelopt-benchmark-")
os.environ |= {"KERNELOPT_VAR": FOLDER, "KERNELOPT_SQLITE": f"{FOLDER}/db.sqlite3", "KERNELOPT_DEMO": "0",
               "DJANGO_SETTINGS_MODULE": "kernelopt_site.settings.base", "DJANGO_ALLOW_ASYNC_UNSAFE": "1"}

import django

django.setup()

from playwright.sync_api import sync_playwright
from serve import free_port, start
from table import print_machine, print_table

from tests.browser.people import PASSWORD, seed

WATCH = """() => {
  window.arrived = [];
  new MutationObserver(() => window.arrived.push(Date.now()))
    .observe(document.querySelector("[data-feed]"), {childList: true});
}"""


def main() -> None:
    """Append events to a campaign's stream and watch its page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=20)
    repeat = parser.parse_args().repeat
    seed()
    from apps.bridge import api
    from apps.campaigns.services import campaign_create
    from apps.kernels.services import hardware_register, operators_sync
    from apps.stream.services import recording
    from apps.teams.models import Team, User

    operators_sync()
    here = api.hardware_here()
    hardware_register(name=here, backends=["numba"], facts={})
    campaign = campaign_create(team=Team.objects.get(slug="core"), person=User.objects.get(username="emma"),
                               goal=api.goal_default("rms_norm", "numba", here, "llm"), name="delay")
    port = free_port()
    site, _ = start(FOLDER, port)
    delays: list[float] = []
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"])
            page = browser.new_page(base_url=f"http://127.0.0.1:{port}")
            page.goto("/accounts/sign-in/")
            page.fill("#username", "emma")
            page.fill("#password", PASSWORD)
            page.click("button:has-text('Sign in')")
            page.goto(f"/campaigns/{campaign.pk}/")
            page.locator(".conn", has_text="Live").first.wait_for()
            page.evaluate(WATCH)
            for n in range(repeat):
                with recording(campaign.stream) as log:
                    log.append(campaign.stream, "round.started", {"round": n + 1})
                committed = time.time() * 1000
                while page.evaluate("() => window.arrived.length") <= n:
                    page.wait_for_timeout(20)
                delays.append(page.evaluate("n => window.arrived[n]", n) - committed)
                page.wait_for_timeout(400)
            browser.close()
    finally:
        site.send_signal(signal.SIGINT)
        site.wait(30)
    print_table("From commit to the open page", "ms", [("event", delays, 1000.0)])
    print_machine("django", "channels", "daphne")


if __name__ == "__main__":
    main()
