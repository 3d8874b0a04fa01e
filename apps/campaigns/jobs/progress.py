"""What pages are told of an attempt that came to nothing, so that none goes on showing where it was."""

from __future__ import annotations

from apps.campaigns.jobs.models import Job
from apps.stream.services import progress_put

OVER = ""
"""The stage of a round whose evaluation begins anew: none of the stages."""


def attempt_over(job: Job) -> None:
    """Overwrite the attempt's last progress frame: those who follow the campaign look at the queue again, and those who
    come later get no stage of an attempt that is dead. Call it outside the transaction that ended the attempt."""
    if job.campaign is not None:
        progress_put(stream=job.campaign.stream, kind="progress", data={
            "job": str(job.pk), "round": job.round.number if job.round else None, "purpose": job.purpose,
            "stage": OVER, "done": 0, "total": 0, "text": "", "clocks": {}})
