"""The real engine and worker processes against the test database, with a quick evaluator, and ways to kill them."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from django.db import connection

from apps.campaigns.models import Campaign
from apps.teams.models import User
from tests.crash.campaigns import begin_campaign, make_person

PROJECT = Path(__file__).parents[2]
FAKE = f"{sys.executable} {Path(__file__).with_name('fake_evaluator.py')}"
PATIENCE_S = 90.0


class Site:
    """Child processes by name (``engine``, ``evalworker``), restarted at once when they are not there."""

    def __init__(self, folder: Path, stage_s: float) -> None:
        self._folder = folder
        self.held = folder / "held"  # the stage that a candidate's evaluation stays in while this file is there
        self._environment = os.environ | {
            "DJANGO_SETTINGS_MODULE": "kernelopt_site.settings.base", "KERNELOPT_VAR": str(folder),
            "KERNELOPT_SQLITE": str(connection.settings_dict["NAME"]), "KERNELOPT_EVALUATE_COMMAND": FAKE,
            "HARNESS_FAKE_STAGE_S": str(stage_s), "HARNESS_FAKE_HOLD": str(self.held), "KERNELOPT_DEMO": "0"}
        self.children: dict[str, subprocess.Popen[bytes]] = {}
        self.killed = 0

    def set(self, name: str, value: str) -> None:
        """A variable of what is started from now on."""
        self._environment[name] = value

    def keep(self, *names: str) -> None:
        """Start what is not running: what ``serve`` does."""
        for name in names:
            child = self.children.get(name)
            if child is None or child.poll() is not None:
                log = (self._folder / f"{name}.log").open("ab")
                self.children[name] = subprocess.Popen(
                    [sys.executable, str(PROJECT / "manage.py"), name], cwd=PROJECT, env=self._environment,
                    stdout=log, stderr=log, start_new_session=True)
                log.close()

    def kill(self, name: str) -> None:
        """``kill -9``, and nothing else."""
        child = self.children.pop(name, None)
        if child is not None and child.poll() is None:
            child.send_signal(signal.SIGKILL)
            child.wait()
            self.killed += 1

    def kill_evaluator(self) -> bool:
        """``kill -9`` the worker's evaluator child; whether there was one."""
        worker = self.children.get("evalworker")
        if worker is None or worker.poll() is not None:
            return False
        for child in psutil.Process(worker.pid).children():
            child.kill()
            self.killed += 1
            return True
        return False

    def until(self, condition: Callable[[], Any], *names: str) -> Any:
        """Keep ``names`` running until ``condition`` gives something; fail with the logs when it does not."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            self.keep(*names)
            found = condition()
            if found:
                return found
            time.sleep(0.02)
        raise AssertionError("the condition did not come true\n" + self.logs())

    def logs(self) -> str:
        """What the children said last."""
        return "\n".join(f"== {path.name}\n{path.read_text('utf-8', 'replace')[-3000:]}"
                         for path in sorted(self._folder.glob("*.log")))

    def close(self) -> None:
        """End everything."""
        for name in list(self.children):
            child = self.children[name]
            tree = psutil.Process(child.pid).children(recursive=True) if child.poll() is None else []
            self.kill(name)
            for process in tree:
                if process.is_running():
                    process.kill()
            psutil.wait_procs(tree, timeout=60)


@pytest.fixture
def site(tmp_path: Path, transactional_db: None) -> Iterator[Site]:
    """A site without its web process."""
    made = Site(tmp_path, stage_s=0.04)
    yield made
    made.close()


@pytest.fixture
def person(transactional_db: None) -> User:
    """An engineer with a team."""
    return make_person()


@pytest.fixture
def begin(person: User) -> Callable[..., Campaign]:
    """Starts a campaign of ``person``; takes what ``begin_campaign`` takes."""
    return functools.partial(begin_campaign, person)
