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

from apps.bridge.runner.demo.names import people_at_work
from apps.bridge.runner.evaluator import Abandoned, Evaluator
from apps.bridge.runner.responses import Response, ResponseInvalid
from apps.bridge.runner.watch import Watch
from apps.campaigns.choices import PRIORITIES, JobPurpose
from apps.campaigns.jobs import services
from apps.campaigns.jobs.handback import job_release, urgent_job_waits
from apps.campaigns.jobs.models import Job
from apps.campaigns.jobs.waiting import due, in_reach
from apps.core.errors import AppError, LeaseLost

IDLE_S = 0.2
REAP_EVERY_S = 1.0
BEAT_EVERY_S = 3.0
log = logging.getLogger(__name__)


@dataclass
class EvaluationWorker:
    """``beat`` reports the worker's life with the last verdict, ``when_idle`` may do background work, ``when_busy``
    hears that there was a job."""

    evaluator: Evaluator
    hardware: str
    backends: list[str]
    beat: Callable[[dict | None], bool]  # answers whether the worker may take jobs (it is not being drained)
    when_idle: Callable[[], None] = lambda: None
    when_busy: Callable[[], None] = lambda: None
    stopping: threading.Event = field(default_factory=threading.Event)
    _verdict: dict | None = None
    _may_work: bool = True
    _beaten: float = float("-inf")
    _reaped: float = float("-inf")

    def run(self) -> None:
        """Work until ``stopping`` is set; the evaluator's tree is gone when this returns."""
        try:
            while not self.stopping.is_set():
                self.report()
                if self._may_work and self.work_once():
                    self.when_busy()
                else:
                    self.when_idle()
                    self.stopping.wait(IDLE_S)
                close_old_connections()
        finally:
            self.evaluator.close()

    def report(self) -> None:
        """Beat every three seconds."""
        if time.monotonic() - self._beaten >= BEAT_EVERY_S:
            self._beaten = time.monotonic()
            self._may_work = self.beat(self._verdict)

    def work_once(self) -> bool:
        """Take one job, if there is one, and bring it to an end."""
        if time.monotonic() - self._reaped >= REAP_EVERY_S:
            self._reaped = time.monotonic()
            services.jobs_reap()
        if people_at_work() and not person_waits(self.hardware):
            return False  # a background job begun now would only be in the way of the next round
        job = services.job_lease(hardware=self.hardware, backends=self.backends)
        if job is None:
            return False
        log.info("Job %s (%s) taken, attempt %d.", job.pk, job.purpose, job.attempt)
        try:
            response = self._judge(job)
            services.job_complete(job_id=job.pk, fence=job.fence, document=response.verdict, samples=response.samples)
            self._verdict = response.verdict
            log.info("Job %s: %s.", job.pk, response.verdict["outcome"])
        except LeaseLost:
            log.warning("The lease of job %s was lost; its new owner repeats it. Nothing was recorded here.", job.pk)
        except Abandoned as reason:
            log.info("Job %s handed back: %s.", job.pk, reason)
            self._release(job, str(reason))
        except (ResponseInvalid, AppError) as problem:
            log.error("Job %s got no verdict: %s", job.pk, problem)
            self._fail(job, str(problem))
        return True

    def _judge(self, job: Job) -> Response:
        watch = Watch(job=job, report=self.report, stopping=self.stopping.is_set,
                      must_yield=lambda: job.priority < PRIORITIES[JobPurpose.ROUND] and urgent_job_waits(job=job))
        return self.evaluator.evaluate(job.request, on_progress=watch.progress, on_tick=watch.tick)

    @staticmethod
    def _release(job: Job, reason: str) -> None:
        try:
            job_release(job_id=job.pk, fence=job.fence, reason=f"Handed back: {reason}.")
        except LeaseLost:
            return  # cancelled, or presumed dead and taken over: not ours to give back

    @staticmethod
    def _fail(job: Job, text: str) -> None:
        try:
            services.job_fail(job_id=job.pk, fence=job.fence, error=text)
        except LeaseLost:
            return


def person_waits(hardware: str | None) -> bool:
    """Whether a job that somebody waits for is in the queue, and the worker of ``hardware`` or another can do it."""
    return due().filter(in_reach(hardware), priority__gte=PRIORITIES[JobPurpose.ROUND]).exists()
