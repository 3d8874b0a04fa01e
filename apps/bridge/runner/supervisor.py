"""Keeps the children of ``serve`` running: own process group each, back-off, a state file for pages, a clean end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from apps.bridge.runner.keys import without_keys
from apps.bridge.runner.processes import adopt_orphans, dies_with_parent, end_orphans, end_tree

TICK_S = 0.2
STATE_EVERY_S = 2.0
FIRST_DELAY_S = 0.5
LONGEST_DELAY_S = 30.0
HEALTHY_AFTER_S = 30.0
STOP_PATIENCE_S = 8.0


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """One child: its name in the state file, its command line, the cores it may use (empty: all), and whether it asks
    language models: only then it gets their keys."""

    name: str
    command: tuple[str, ...]
    cores: frozenset[int] = frozenset()
    keys: bool = False


@dataclass
class Child:
    """A child's life: the process while it runs, otherwise when to start it again (monotonic seconds)."""

    spec: ChildSpec
    process: subprocess.Popen[bytes] | None = None
    since: datetime = field(default_factory=lambda: datetime.now(UTC))
    started: float = 0.0
    due: float = 0.0
    delay: float = FIRST_DELAY_S
    restarts: int = 0
    text: str = ""

    @property
    def up(self) -> bool:
        """Whether its process was running at the last look."""
        return self.process is not None


class Supervisor:
    """Starts children, restarts those that end, writes ``state_file`` every 2 s, ends all when asked to.

    ``on_end`` is told the name and the sentence whenever a child ended unasked; it must not raise. ``key_names`` are
    the environment variables that hold keys, asked for at every start of a child.
    """

    def __init__(self, *, specs: Sequence[ChildSpec], folder: Path, state_file: Path,
                 say: Callable[[str], None], on_end: Callable[[str, str], None] = lambda name, how: None,
                 key_names: Callable[[], frozenset[str]] = frozenset) -> None:
        self.children = [Child(spec) for spec in specs]
        self._folder = folder
        self._state_file = state_file
        self._say = say
        self._on_end = on_end
        self._key_names = key_names
        self._stopping = False
        self._written = 0.0

    def run(self, *, on_tick: Callable[[], None] = lambda: None) -> None:
        """Supervise until SIGINT, SIGTERM or ``stop``; every child is gone when this returns."""
        adopt_orphans()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda *_: self.stop())
        try:
            while not self._stopping:
                self._look()
                on_tick()
                time.sleep(TICK_S)
        finally:
            self._end_all()

    def stop(self) -> None:
        """Ask the loop to end; safe in a signal handler."""
        self._stopping = True

    def _look(self) -> None:
        now = time.monotonic()
        for child in self.children:
            if child.process is None and now >= child.due:
                self._start(child, now)
            elif child.process is not None and child.process.poll() is not None:
                self._ended(child, now)
        self._reap_strangers()
        if now - self._written >= STATE_EVERY_S:
            self._write_state(now)

    def _start(self, child: Child, now: float) -> None:
        spec = child.spec
        die_with_us = dies_with_parent(signal.SIGTERM)

        def prepare() -> None:
            die_with_us()
            if spec.cores:
                os.sched_setaffinity(0, spec.cores)

        try:
            child.process = subprocess.Popen(
                spec.command, cwd=self._folder, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=prepare,
                env=dict(os.environ) if spec.keys else without_keys(os.environ, self._key_names()))
        except OSError as error:
            self._postpone(child, now, f"could not be started: {error}")
            return
        child.started, child.since, child.text = now, datetime.now(UTC), ""
        self._write_state(now)

    def _ended(self, child: Child, now: float) -> None:
        assert child.process is not None
        end_tree(child.process.pid)  # whatever it left in its group
        end_orphans(keep=frozenset(c.process.pid for c in self.children if c.process is not None))
        code = child.process.returncode
        how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        child.process = None
        if now - child.started >= HEALTHY_AFTER_S:
            child.delay = FIRST_DELAY_S
        self._postpone(child, now, how)

    def _postpone(self, child: Child, now: float, how: str) -> None:
        child.due, child.since = now + child.delay, datetime.now(UTC)
        child.text = f"{child.spec.name} {how}; next start in {child.delay:.1f} s"
        child.delay = min(child.delay * 2, LONGEST_DELAY_S)
        child.restarts += 1
        self._say(child.text)
        self._write_state(now)
        self._on_end(child.spec.name, child.text)

    def _reap_strangers(self) -> None:
        """Orphans of killed children become ours: reap their corpses so that they do not pile up."""
        own = {child.process.pid for child in self.children if child.process is not None}
        while True:
            try:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if found is None or found.si_pid in own:  # our own are reaped by ``poll``
                return
            os.waitpid(found.si_pid, os.WNOHANG)

    def _write_state(self, now: float) -> None:
        self._written = now
        document = {
            "version": 1, "pid": os.getpid(), "at": datetime.now(UTC).isoformat(),
            "children": [{"name": child.spec.name, "up": child.up, "since": child.since.isoformat(),
                          "pid": child.process.pid if child.process else None, "restarts": child.restarts,
                          "text": child.text} for child in self.children]}
        self._state_file.parent.mkdir(parents=True, exist_ok=True)
        temporary = self._state_file.with_suffix(".tmp")
        temporary.write_text(json.dumps(document), "utf-8")
        temporary.replace(self._state_file)

    def _end_all(self) -> None:
        """SIGTERM to each group, the web last so that pages can say what happens, SIGKILL to what stays."""
        for child in reversed(self.children):
            if child.process is not None and child.process.poll() is None:
                child.process.terminate()
        deadline = time.monotonic() + STOP_PATIENCE_S
        for child in self.children:
            if child.process is None:
                continue
            try:
                child.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                self._say(f"{child.spec.name} did not end within {STOP_PATIENCE_S:.0f} s and was killed")
            end_tree(child.process.pid)
            child.process.wait()
            child.process = None
        self._state_file.unlink(missing_ok=True)
