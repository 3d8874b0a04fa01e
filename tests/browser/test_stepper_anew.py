"""The stepper of an open page when the attempt that it follows comes to nothing: the script alone, without a site."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route, WebSocketRoute, expect

pytestmark = pytest.mark.browser

SCRIPT = Path(__file__).parents[2] / "static" / "js" / "stream.js"
WAIT_S = 15.0
HOST = "http://page.test"
STAGES = ("admit", "static", "correctness")
STEPS = "".join(f'<li data-stage="{name}"><span data-clock></span></li>' for name in STAGES)
PAGE = f"""<!doctype html><body data-stream-url="/ws/campaigns/1/" data-stream-after="0" data-stream-poll="/events">
<div data-refresh-on="round.*" id="top"><ol data-stepper="0" data-open>{STEPS}</ol></div><p data-progress></p>
<script type="module" src="/stream.js"></script></body>"""


def progress(stage: str, number: int = 0) -> str:
    """A frame as the server sends it."""
    return json.dumps({"kind": "progress", "data": {
        "round": number, "stage": stage, "done": 0, "total": 0, "text": "", "clocks": {}}})


def test_the_region_is_read_again_and_no_clock_goes_on(browser: Browser) -> None:
    context = browser.new_context()
    page = context.new_page()
    sockets: list[WebSocketRoute] = []

    def answer(route: Route) -> None:
        script = route.request.url.endswith("stream.js")
        route.fulfill(body=SCRIPT.read_text() if script else PAGE,
                      content_type="text/javascript" if script else "text/html")

    page.route(f"{HOST}/**", answer)
    page.route_web_socket("**/ws/**", lambda socket: sockets.append(socket))
    page.goto(f"{HOST}/")
    page.evaluate("""() => { window.read = 0;
        document.querySelector('#top').addEventListener('refresh', () => { window.read += 1; }); }""")
    deadline = time.monotonic() + WAIT_S
    while not sockets and time.monotonic() < deadline:
        page.wait_for_timeout(20)  # lets the socket's opening be handled
    sockets[0].send(progress("correctness"))
    expect(page.locator("[data-stage=correctness]")).to_have_class("on")
    expect(page.locator("[data-progress]")).to_have_text("correctness")
    sockets[0].send(progress("", 7))  # of another round: nothing to this stepper
    sockets[0].send(progress("static"))
    expect(page.locator("[data-stage=static]")).to_have_class("on")
    assert page.evaluate("() => window.read") == 0
    sockets[0].send(progress(""))
    page.wait_for_function("() => window.read === 1")
    expect(page.locator("[data-progress]")).to_have_text("")
    context.close()
