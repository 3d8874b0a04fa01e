"""The supervisor: restarts with back-off, tells pages the truth, leaves nothing running."""

from __future__ import annotations

import json
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

PROJECT = Path(__file__).parents[3]
RUN = r'''
import sys
from pathlib import Path
from apps.bridge.runner.supervisor import ChildSpec, Supervisor
folder = Path(sys.argv[1])
stays = (sys.executable, "-c", "import time; time.sleep(600)")
stubborn = (sys.executable, "-c",
            "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)")
breeds = (sys.executable, "-c", """
import subprocess, sys, time
left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
open(sys.argv[1], "w").write(str(left.pid))
time.sleep(600)
""", str(folder / "left"))
ends = (sys.executable, "-c", "raise SystemExit(7)")
specs = {"breeds": breeds, "stays": stays, "stubborn": stubborn, "ends": ends, "missing": ("/no/such/program",)}
import apps.bridge.runner.supervisor as module
module.STOP_PATIENCE_S = 1.0
Supervisor(specs=[ChildSpec(name, specs[name]) for name in sys.argv[2:]], folder=folder,
           state_file=folder / "state.json", say=lambda text: print(text, flush=True)).run()
'''


def _until(condition: Callable[[], Any], seconds: float = 20.0) -> Any:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError("the condition did not come true in time")


class Supervised:
    """A supervisor in a process of its own."""

    def __init__(self, folder: Path, *names: str) -> None:
        self.folder = folder
        self.process = subprocess.Popen([sys.executable, "-c", RUN, str(folder), *names], cwd=PROJECT,
                                        stdout=subprocess.PIPE, text=True)

    def state(self) -> dict[str, Any]:
        """The state file's document, empty while there is none."""
        try:
            return json.loads((self.folder / "state.json").read_text("utf-8"))
        except FileNotFoundError:
            return {}

    def child(self, name: str) -> dict[str, Any]:
        """One child's entry."""
        return next((entry for entry in self.state().get("children", []) if entry["name"] == name), {})

    def up(self, name: str) -> int:
        """The process number of ``name`` once it runs."""
        return _until(lambda: self.child(name).get("up") and self.child(name)["pid"])


@pytest.fixture
def supervised(tmp_path: Path) -> Iterator[Callable[..., Supervised]]:
    """Starts supervisors and kills what is left of them."""
    made: list[Supervised] = []

    def start(*names: str) -> Supervised:
        made.append(Supervised(tmp_path, *names))
        return made[-1]

    yield start
    for one in made:
        if one.process.poll() is None:
            for process in [*psutil.Process(one.process.pid).children(recursive=True), psutil.Process(one.process.pid)]:
                process.kill()
        one.process.wait()


def _gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_a_killed_child_is_started_again_and_the_state_says_so(supervised: Callable[..., Supervised]) -> None:
    one = supervised("stays")
    first = one.up("stays")
    os.kill(first, signal.SIGKILL)
    second = _until(lambda: one.child("stays").get("up") and one.child("stays")["pid"] != first
                    and one.child("stays")["pid"])
    assert one.child("stays")["restarts"] == 1 and not _gone(second)


def test_a_child_that_keeps_ending_is_tried_less_and_less_often(supervised: Callable[..., Supervised]) -> None:
    one = supervised("ends")
    text = _until(lambda: "2.0 s" in one.child("ends").get("text", "") and one.child("ends")["text"])
    assert text == "ends ended with code 7; next start in 2.0 s"


def test_a_program_that_is_not_there_is_a_sentence_not_an_end(supervised: Callable[..., Supervised]) -> None:
    one = supervised("missing", "stays")
    one.up("stays")
    assert "could not be started" in _until(lambda: one.child("missing").get("text"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_asked_to_stop_it_ends_every_child(supervised: Callable[..., Supervised], number: int) -> None:
    one = supervised("stays", "stubborn")
    pids = [one.up("stays"), one.up("stubborn")]
    one.process.send_signal(number)
    assert one.process.wait(60) == 0
    assert all(_gone(pid) for pid in pids)
    assert one.state() == {}


def test_killed_outright_its_children_are_asked_to_end_by_the_kernel(supervised: Callable[..., Supervised]) -> None:
    one = supervised("stays")
    pid = one.up("stays")
    one.process.kill()
    one.process.wait()
    _until(lambda: _gone(pid))


def test_what_a_killed_child_left_running_is_ended_even_from_a_session_of_its_own(
    supervised: Callable[..., Supervised]
) -> None:
    one = supervised("breeds")
    pid = one.up("breeds")
    left = int(_until(lambda: (one.folder / "left").exists() and (one.folder / "left").read_text()))
    os.kill(pid, signal.SIGKILL)
    _until(lambda: _gone(left))
