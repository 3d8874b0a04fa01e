"""What the worker does while nobody waits for its device: the evaluator's self-test, and the doctor's report.

Rounds go first: both make way when a job comes, and are tried again later. Only where an approved request waits for
the self-test does the self-test come before rounds. The whole corpus is interrupted between kernels: each result is
kept in a file, and the next run goes on where this one stopped.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any

from django.utils import timezone

from apps.bridge import api
from apps.bridge.runner.evaluator import clean_environment
from apps.bridge.runner.processes import dies_with_parent, end_tree
from apps.campaigns.choices import JobState
from apps.campaigns.jobs.models import Job, SelfTest
from apps.campaigns.jobs.selftest_orders import order_waits, orders_answer
from apps.campaigns.jobs.waiting import due, in_reach
from apps.campaigns.jobs.workers import selftest_record
from apps.campaigns.selectors import at_work
from apps.kernels.models import Verdict
from apps.reviews.models import ReviewRequest

LOOK_EVERY_S = 5.0
IDLE_AT_LEAST_S = 10.0
RETRY_S = 300.0
QUICK_LIMIT_S = 300.0
FULL_LIMIT_S = 3600.0
FULL_EVERY = timedelta(hours=24)
FULL_AFTER_IDLE_S = 900.0
TICK_S = 0.25
A_MINUTE_S = 60.0
log = logging.getLogger(__name__)


@dataclass
class IdleWork:
    """Called whenever the worker of a device found no job. ``report`` beats for it, ``stopping`` says that it ends;
    ``backend`` is the one that the device is tested with."""

    project: Path
    var: Path
    report: Callable[[], None]
    stopping: Callable[[], bool]
    hardware: str = field(default_factory=api.hardware_here)
    backend: str = "numba"
    command: Sequence[str] = (sys.executable, "-m", "harness")
    _idle_since: float = field(default_factory=time.monotonic)
    _due: float = 0.0
    _not_before: dict[str, float] = field(default_factory=dict)

    def busy(self) -> None:
        """The worker had a job: the clock of idleness starts anew."""
        self._idle_since = time.monotonic()

    def __call__(self) -> None:
        """Do at most one thing."""
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + LOOK_EVERY_S
        first = approved_waits()
        if not first and job_waits(self.hardware):
            self.busy()  # the device is somebody else's: what was begun now would make way at once
            return
        order = order_waits(self.hardware)
        if order is None and now - self._idle_since < IDLE_AT_LEAST_S and not first:
            return
        if self._may("selftest") and (order is not None or first or not campaign_runs()):
            quick = order.quick if order is not None else self._selftest_wanted()
            if quick is not None:
                self._selftest(quick=quick, asked_at=order.at if order is not None else None)
                return
        if self._may("doctor") and not campaign_runs() and not self._examined():
            self._run("doctor", ["doctor", "--json"], QUICK_LIMIT_S)

    def _examined(self) -> bool:
        """Whether the doctor's report is of the last day: walls may fall when a machine is set up anew."""
        try:
            age = time.time() - (self.var / "doctor.json").stat().st_mtime
        except OSError:
            return False
        return age < FULL_EVERY.total_seconds()

    def _may(self, name: str) -> bool:
        return time.monotonic() >= self._not_before.get(name, 0.0)

    def _selftest_wanted(self) -> bool | None:
        """``True`` for the quick one, ``False`` for the whole corpus, ``None`` for neither."""
        here = api.environment_class_here(self.hardware, self.backend)
        known = SelfTest.objects.filter(evaluator_version=api.evaluator_version(), environment_class=here,
                                        backend=self.backend)
        # Level 0 is also what a candidate carries that was refused before anything ran.
        judged = Verdict.objects.filter(environment_class=here, foreign=False, isolation__gt=0)
        verdict = judged.order_by("-id").first()
        if not known.exists() or (verdict is not None and not known.filter(isolation=verdict.isolation).exists()):
            return True
        long_idle = time.monotonic() - self._idle_since >= FULL_AFTER_IDLE_S
        recent = known.filter(quick=False, at__gte=timezone.now() - FULL_EVERY).exists()
        return False if long_idle and not recent else None

    def _selftest(self, *, quick: bool, asked_at: datetime | None = None) -> None:
        options = ["selftest", *(["--quick"] if quick else []), "--backend", self.backend, "--json"]
        if self.hardware.startswith("nvidia-"):
            options += ["--hardware", self.hardware]
        kept = self.var / "selftest" / f"{self.hardware}.jsonl"
        if not quick:
            options += ["--resume", str(kept)]
            _make_room(kept, asked_at)
        began = timezone.now()
        report = self._run("selftest", options, QUICK_LIMIT_S if quick else FULL_LIMIT_S)
        if report is None:
            return
        places, level = report.get("environments") or [], report.get("isolation")
        if report.get("passed") is None or len(places) != 1 or level is None:
            log.warning("The self-test could not judge everything; it is repeated in %.0f s.", RETRY_S)
            return
        row = selftest_record(evaluator_version=report["evaluator"], environment_class=places[0], isolation=level,
                              backend=self.backend, quick=quick, passed=report["passed"], report=report)
        orders_answer(hardware=self.hardware, test=row, began=began)
        if not quick:
            kept.unlink(missing_ok=True)  # complete: the next run begins anew

    def _run(self, name: str, options: list[str], limit_s: float) -> dict[str, Any] | None:
        """The JSON that ``python -m harness <options>`` prints; ``None`` when it made way or broke."""
        self._not_before[name] = time.monotonic() + RETRY_S
        deadline = time.monotonic() + limit_s
        with TemporaryDirectory(prefix="kernelopt-idle-", ignore_cleanup_errors=True) as home, \
                TemporaryFile() as output:
            child = subprocess.Popen(
                [*self.command, *options], cwd=self.project, env=clean_environment(Path(home)),
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.DEVNULL, start_new_session=True,
                preexec_fn=dies_with_parent())
            try:
                while child.poll() is None:
                    self.report()
                    first = name == "selftest" and approved_waits()
                    if self.stopping() or (job_waits(self.hardware) and not first):
                        log.info("The %s makes way and is run again later.", name)
                        self._not_before[name] = 0.0
                        return None
                    if time.monotonic() > deadline:
                        log.warning("The %s did not end within %.0f s and was ended.", name, limit_s)
                        return None
                    time.sleep(TICK_S)
            finally:
                end_tree(child.pid)
                child.wait()
            output.seek(0)
            return _document(output.read(), name)


def _make_room(kept: Path, asked_at: datetime | None) -> None:
    """The folder for interim results; those from before a person's order do not answer it, and what others may have
    written answers nothing."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.parent.chmod(0o700)
    if not os.path.lexists(kept):
        return
    if not _ours_alone(kept) or (asked_at is not None and _begun(kept) < asked_at.timestamp()):
        kept.unlink()


def _ours_alone(kept: Path) -> bool:
    """Whether nobody else may write the file, by whatever name; results of the future are not ours either."""
    facts = kept.lstat()
    mine = stat.S_ISREG(facts.st_mode) and facts.st_uid == os.geteuid() and facts.st_nlink == 1
    if not mine or facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return False
    return max(_moments(kept), default=0.0) < time.time() + A_MINUTE_S


def _begun(kept: Path) -> float:
    """When the oldest interim result was written (seconds since the epoch); now where none can be read."""
    return min(_moments(kept), default=time.time())


def _moments(kept: Path) -> list[float]:
    times = []
    for line in kept.read_text("utf-8", "replace").splitlines():
        with contextlib.suppress(ValueError, KeyError, TypeError):
            times.append(float(json.loads(line)["at"]))
    return times


def _document(data: bytes, name: str) -> dict[str, Any] | None:
    try:
        return json.loads(data)
    except ValueError:
        log.warning("The %s printed no report.", name)
        return None


def job_waits(hardware: str) -> bool:
    """Whether anybody's job that can be done now waits in the queue, or another lane of ``hardware`` has one: whoever
    asks has none."""
    elsewhere = Job.objects.filter(state=JobState.LEASED, hardware=hardware)
    return elsewhere.exists() or due().filter(in_reach(hardware)).exists()


def campaign_runs() -> bool:
    """Whether a campaign is running, so that a job may come any moment."""
    return at_work().exists()


def approved_waits() -> bool:
    """Whether an approved request waits for its verification."""
    return ReviewRequest.objects.filter(state="approved").exists()
