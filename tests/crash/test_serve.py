"""``manage.py serve`` with each of its children killed in turn while a campaign runs."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from django.db import connection

from apps.campaigns.jobs.models import Worker
from apps.campaigns.models import Campaign, EngineResult
from apps.stream.models import Event
from apps.teams.models import Team
from tests.crash.conftest import FAKE, PROJECT
from tests.crash.test_kills import _nothing_lost_nothing_twice

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
PATIENCE_S = 120.0


class Served:
    """A running site on a port of its own."""

    def __init__(self, folder: Path, *options: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.folder = folder
        environment = os.environ | {
            "DJANGO_SETTINGS_MODULE": "kernelopt_site.settings.base", "KERNELOPT_VAR": str(folder),
            "KERNELOPT_SQLITE": str(connection.settings_dict["NAME"]), "KERNELOPT_EVALUATE_COMMAND": FAKE,
            "HARNESS_FAKE_STAGE_S": "0.1"}
        with (folder / "serve.log").open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(PROJECT / "manage.py"), "serve", "--port", str(self.port), *options],
                cwd=PROJECT, env=environment, stdout=log, stderr=log, start_new_session=True)

    def pid(self, name: str) -> int | None:
        """The child's process number while it is up."""
        try:
            state = json.loads((self.folder / "run" / "serve.json").read_text("utf-8"))
        except FileNotFoundError:
            return None
        entry = next(child for child in state["children"] if child["name"] == name)
        return entry["pid"] if entry["up"] and psutil.pid_exists(entry["pid"]) else None

    def answers(self) -> bool:
        """Whether the web process answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health/", timeout=2) as response:
                return response.status == 200
        except (OSError, urllib.error.HTTPError):
            return False

    def until(self, condition: Callable[[], Any]) -> Any:
        """Wait for ``condition``; fail with the log when it does not come true."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            found = condition()
            if found:
                return found
            time.sleep(0.05)
        raise AssertionError((self.folder / "serve.log").read_text("utf-8", "replace")[-4000:])


@pytest.fixture
def served(tmp_path: Path, transactional_db: None) -> Iterator[Callable[..., Served]]:
    """Starts sites, and ends what is left of them."""
    made: list[Served] = []

    def start(*options: str) -> Served:
        made.append(Served(tmp_path, *options))
        return made[-1]

    yield start
    for one in made:
        if one.process.poll() is None:
            tree = psutil.Process(one.process.pid).children(recursive=True)
            one.process.kill()
            for process in tree:
                if process.is_running():
                    process.kill()
            psutil.wait_procs(tree, timeout=60)
        one.process.wait()


def test_each_child_killed_in_turn_comes_back_and_the_campaign_ends_as_if_nothing_had_been(
    served: Callable[..., Served], begin: Callable[..., Campaign]
) -> None:
    site = served()
    site.until(site.answers)
    campaign = begin(rounds=3)
    results = EngineResult.objects.filter(campaign=campaign)
    for name in ("engine", "web", "evalworker"):
        before = results.count()
        site.until(lambda before=before: results.count() > before)  # the campaign moves between two kills
        victim = site.until(lambda name=name: site.pid(name))
        os.kill(victim, signal.SIGKILL)
        site.until(lambda name=name, victim=victim: site.pid(name) not in (None, victim))
    site.until(site.answers)
    site.until(lambda: Campaign.objects.get(pk=campaign.pk).state == "finished")
    _nothing_lost_nothing_twice(campaign)
    told = Event.objects.filter(stream_id=Team.objects.get().stream, kind="worker.down")
    assert {event.data["kind"] for event in told} == {"engine", "evalworker"}
    site.until(lambda: Worker.objects.filter(kind__in=("engine", "evalworker"), lease_expires_at=None).count() == 0)
    site.process.send_signal(signal.SIGINT)
    assert site.process.wait(PATIENCE_S) == 0
    assert "Stopped. Everything written so far is kept" in (site.folder / "serve.log").read_text("utf-8")


def test_a_second_site_and_a_taken_port_are_sentences(served: Callable[..., Served]) -> None:
    first = served()
    first.until(first.answers)
    second = served()
    assert second.process.wait(PATIENCE_S) == 1
    assert "already runs here" in (second.folder / "serve.log").read_text("utf-8")


def test_the_demo_is_for_this_machine_alone(served: Callable[..., Served]) -> None:
    site = served("--demo", "--host", "0.0.0.0")
    assert site.process.wait(PATIENCE_S) == 1
    assert "serves this machine only" in (site.folder / "serve.log").read_text("utf-8")
