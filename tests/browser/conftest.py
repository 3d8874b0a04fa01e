"""A real ``serve`` in a folder of its own, and people in headless Chromium."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.browser.people import PASSWORD
from tests.tables import begin_with_tables

PROJECT = Path(__file__).parents[2]
START_S = 90.0
PATIENCE_MS = 20_000
"""Other tests run beside these: a page may take its time, as long as it comes."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The main job comes last: its site has the real evaluator, which measures by itself for as long as it stands."""
    items.sort(key=lambda item: item.path.name == "test_main_job.py")


@dataclass
class Site:
    """A running site: its address, its folder and its process tree."""

    url: str
    folder: Path
    process: subprocess.Popen[bytes]

    def child(self, word: str) -> psutil.Process:
        """The supervised child whose command line holds ``word``."""
        for child in psutil.Process(self.process.pid).children():
            if any(word in part for part in child.cmdline()):
                return child
        raise AssertionError(f"no child of serve has '{word}' in its command line\n{self.log()}")

    def log(self) -> str:
        """What ``serve`` and its children printed."""
        return (self.folder / "serve.log").read_text("utf-8", "replace")[-6000:]


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _until(condition: Callable[[], Any], seconds: float, what: str, log: Callable[[], str]) -> Any:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"{what} did not happen within {seconds:g} s\n{log()}")


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False


@contextmanager
def served(folder: Path, **more: str) -> Iterator[Site]:
    """A site in ``folder``: real web, engine and worker processes, a seeded team, no demo. ``more``: environment."""
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "kernelopt_site.settings.base", "KERNELOPT_VAR": str(folder), "KERNELOPT_DEMO": "0",
        "KERNELOPT_SQLITE": str(folder / "kernelopt.sqlite3"),
    } | more
    begin_with_tables(folder / "kernelopt.sqlite3")
    subprocess.run([sys.executable, "-m", "tests.browser.people"], cwd=PROJECT, env=environment, check=True)
    port = _free_port()
    with (folder / "serve.log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "manage.py", "serve", "--port", str(port)], cwd=PROJECT,
                                   env=environment, stdout=log, stderr=log, start_new_session=True)
    made = Site(f"http://127.0.0.1:{port}", folder, process)
    try:
        _until(lambda: _answers(made.url + "/health/"), START_S, "the first answer", made.log)
        yield made
    finally:
        tree = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGINT)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
        for left in tree:
            if left.is_running():
                left.kill()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The site of the browser tests, with the real evaluator; a module may serve one of its own by this name."""
    with served(tmp_path_factory.mktemp("site")) as made:
        yield made


@pytest.fixture(scope="session")
def quick_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Everything real but the evaluator: a stand-in answers within a second or two. Modules that time nothing share
    it as their ``site``."""
    stand_in = f"{sys.executable} {PROJECT / 'tests' / 'crash' / 'fake_evaluator.py'}"
    with served(tmp_path_factory.mktemp("quick"), KERNELOPT_EVALUATE_COMMAND=stand_in, HARNESS_FAKE_STAGE_S="0.25",
                KERNELOPT_CANARY_EVERY="0") as made:
        yield made


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The system's Chromium; Playwright downloads none."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    assert path, "Chromium is not installed; run `make test`, which installs it or says how."
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=[
            "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"])
        yield launched
        launched.close()


@pytest.fixture
def as_person(site: Site, browser: Browser) -> Iterator[Callable[..., Page]]:
    """``as_person("emma")`` signs in through the form and gives a page of a fresh browser profile."""
    contexts = []

    def enter(username: str, **options: Any) -> Page:
        context = browser.new_context(base_url=site.url, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.goto("/accounts/sign-in/")
        page.fill("#username", username)
        page.fill("#password", PASSWORD)
        page.click("text=Sign in >> nth=-1")
        page.wait_for_url(lambda url: "sign-in" not in url)
        return page

    yield enter
    for context in contexts:
        context.close()
