"""The evaluation worker: takes a job, has it judged by the evaluator, records the verdict; one per device.

The Job row is the truth. Every write carries the fencing token of the lease, so a worker that was presumed dead can
no longer change anything. Killed at any moment it leaves a leased job, which the next worker takes over at once.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from django.db import close_old_connections

from apps.bridge.runner.evaluator import Abandoned, Evaluator, ProgressLine
from apps.bridge.runner.responses import Response, ResponseInvalid
from apps.campaigns.jobs import services
from apps.campaigns.jobs.models import Job
from apps.core.errors import LeaseLost

IDLE_S = 0.25
BEAT_EVERY_S = 3.0
HEARTBEAT_EVERY_S = 5.0
PROGRESS_EVERY_S = 0.25
YIELD_LOOK_EVERY_S = 1.0
log = logging.getLogger(__name__)


@dataclass
class EvaluationWorker:
    """``beat`` reports the worker's life, ``must_yield`` says whether ``job`` should make way for a person's,
    ``when_idle`` may do background work and says whether it did."""

    evaluator: Evaluator
    hardware: tuple[str, ...]
    backends: tuple[str, ...]
    beat: Callable[[], None]
    must_yield: Callable[[Job], bool] = lambda job: False
    when_idle: Callable[[], bool] = lambda: False
    stopping: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Work until ``stopping`` is set; the evaluator's tree is gone when this returns."""
        beaten = 0.0
        try:
            while not self.stopping.is_set():
                if time.monotonic() - beaten >= BEAT_EVERY_S:
                    beaten = time.monotonic()
                    self.beat()
                if not self.work_once() and not self.when_idle():
                    self.stopping.wait(IDLE_S)
                close_old_connections()
        finally:
            self.evaluator.close()

    def work_once(self) -> bool:
        """Take one job, if there is one, and bring it to an end."""
        services.jobs_reap()
        job = services.job_lease(hardware=self.hardware, backends=self.backends)
        if job is None:
            return False
        log.info("Job %s (%s of %s) taken, attempt %d.", job.pk, job.purpose, job.hardware, job.attempt)
        try:
            response = self._judge(job)
            services.job_complete(job_id=job.pk, fence=job.fence, document=response.verdict, samples=response.samples)
            log.info("Job %s: %s.", job.pk, response.verdict["outcome"])
        except LeaseLost:
            log.warning("The lease of job %s was lost; what was measured is not recorded, its new owner repeats it.",
                        job.pk)
        except Abandoned as reason:
            log.info("Job %s handed back: %s", job.pk, reason)
            self._quietly(lambda: services.job_release(job_id=job.pk, fence=job.fence))
        except ResponseInvalid as invalid:
            text = str(invalid)
            log.error("Job %s got no verdict: %s", job.pk, text)
            self._quietly(lambda: services.job_fail(job_id=job.pk, fence=job.fence, error=text))
        return True

    def _judge(self, job: Job) -> Response:
        watch = _Watch(self, job)
        return self.evaluator.evaluate(job.request, on_progress=watch.progress, on_tick=watch.tick)

    @staticmethod
    def _quietly(write: Callable[[], object]) -> None:
        """The lease may be gone by now; then its new owner decides."""
        try:
            write()
        except LeaseLost:
            return


class _Watch:
    """What happens beside one evaluation: heartbeats, progress at most four times a second, reasons to give up."""

    def __init__(self, worker: EvaluationWorker, job: Job) -> None:
        self._worker, self._job = worker, job
        self._line: ProgressLine | None = None
        self._written = self._stage_since = 0.0
        self._stage = ""
        self._heartbeat = self._beat = self._looked = time.monotonic()

    def progress(self, line: ProgressLine) -> None:
        """Keep the newest line; written by the next tick that may. A new stage is written at once."""
        self._line = line
        if line.stage != self._stage:
            self._stage = line.stage
            self._write()

    def tick(self) -> None:
        """Called about four times a second while the evaluator works."""
        now = time.monotonic()
        if self._worker.stopping.is_set():
            raise Abandoned("the worker ends")
        if now - self._heartbeat >= HEARTBEAT_EVERY_S:
            self._heartbeat = now
            services.job_heartbeat(job_id=self._job.pk, fence=self._job.fence)
        if now - self._beat >= BEAT_EVERY_S:
            self._beat = now
            self._worker.beat()
        if now - self._looked >= YIELD_LOOK_EVERY_S:
            self._looked = now
            if self._worker.must_yield(self._job):
                raise Abandoned("a person's job waits and goes first")
        if self._line is not None and now - self._written >= PROGRESS_EVERY_S:
            self._write()

    def _write(self) -> None:
        assert self._line is not None
        line, self._line, self._written = self._line, None, time.monotonic()
        services.job_progress(job_id=self._job.pk, fence=self._job.fence,
                              frame={"stage": line.stage, "done": line.done, "total": line.total, "text": line.text})
