"""What happens beside one evaluation: heartbeats, progress at most four times a second, reasons to give up."""

from __future__ import annotations

import time
from collections.abc import Callable

from apps.bridge.runner.evaluator import Abandoned, ProgressLine
from apps.campaigns.jobs import services
from apps.campaigns.jobs.models import Job
from apps.stream.services import progress_put

HEARTBEAT_EVERY_S = 5.0
PROGRESS_EVERY_S = 0.25
LOOK_EVERY_S = 1.0


class Watch:
    """Belongs to one evaluation of ``job``. ``must_yield`` says whether it should make way now."""

    def __init__(self, *, job: Job, report: Callable[[], None], stopping: Callable[[], bool],
                 must_yield: Callable[[], bool]) -> None:
        self._job, self._report, self._stopping, self._must_yield = job, report, stopping, must_yield
        self._line: ProgressLine | None = None
        self._clocks: dict[str, float] = {}
        self._stage = ""
        self._stage_since = self._heartbeat = self._looked = time.monotonic()
        self._written = float("-inf")

    def progress(self, line: ProgressLine) -> None:
        """Keep the newest line for the next tick that may write; a new stage is written at once."""
        self._line = line
        if line.stage != self._stage:
            now = time.monotonic()
            if self._stage:
                self._clocks[self._stage] = round(now - self._stage_since, 2)
            self._stage, self._stage_since = line.stage, now
            self._write()

    def tick(self) -> None:
        """Called about four times a second while the evaluator works.

        Raises:
            Abandoned: the worker ends, or a more urgent job waits for a background one.
            LeaseLost: the job was cancelled or taken over.
        """
        now = time.monotonic()
        if self._stopping():
            raise Abandoned("the worker ended")
        self._report()
        if now - self._heartbeat >= HEARTBEAT_EVERY_S:
            self._heartbeat = now
            services.job_heartbeat(job_id=self._job.pk, fence=self._job.fence)
        if now - self._looked >= LOOK_EVERY_S:
            self._looked = now
            if self._must_yield():
                raise Abandoned("a more urgent job goes first")
        if self._line is not None and now - self._written >= PROGRESS_EVERY_S:
            self._write()

    def _write(self) -> None:
        assert self._line is not None
        line, self._line, self._written = self._line, None, time.monotonic()
        services.job_progress(job_id=self._job.pk, fence=self._job.fence, stage=line.stage, done=line.done,
                              total=line.total, text=line.text)
        if self._job.campaign is not None:
            clocks = self._clocks | {line.stage: round(self._written - self._stage_since, 2)}
            progress_put(stream=self._job.campaign.stream, kind="progress", data={
                "job": str(self._job.pk), "round": self._job.round.number if self._job.round else None,
                "purpose": self._job.purpose, "stage": line.stage, "done": line.done, "total": line.total,
                "text": line.text, "clocks": clocks})
