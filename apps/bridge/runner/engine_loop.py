"""The engine process: a thread per active campaign; the gate's sweep; the mirror; the demo's director.

Up to four campaigns work at a time. One whose agent thinks uses nothing of this machine and does not count, so that
slow models starve nobody; and where more campaigns wait than have a place, they take turns.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from django.db import connection

from apps.bridge.runner.campaign_loop import CampaignRunner, Marker, marker
from apps.bridge.runner.demo.names import is_background
from apps.campaigns import services
from apps.campaigns.models import Campaign
from apps.core.errors import AppError, LeaseLost

THREADS = 4
MOST_THREADS = 32
TURN_S = 5.0
"""How long a campaign keeps its place while others wait for one."""
END_WITHIN_S = 6.0
LOOK_EVERY_S = 0.25
RENEW_EVERY_S = 8.0
FAILURES_UNTIL_PAUSE = 4
FIRST_DELAY_S = 1.0
log = logging.getLogger(__name__)


@dataclass
class Errand:
    """Something done every ``every_s`` seconds in the main thread; its failures are logged and change nothing else."""

    name: str
    every_s: float
    run: Callable[[], object]
    due: float = float("-inf")


@dataclass
class Active:
    """A campaign in work: its thread and its lease."""

    thread: threading.Thread
    runner: CampaignRunner
    since: float = field(default_factory=time.monotonic)


@dataclass
class EngineLoop:
    """``run`` works until ``stopping`` is set. ``errands`` are looked at four times a second."""

    errands: list[Errand]
    stopping: threading.Event = field(default_factory=threading.Event)
    _active: dict[int, Active] = field(default_factory=dict)
    _settled: dict[int, Marker] = field(default_factory=dict)
    _failures: dict[int, int] = field(default_factory=dict)
    _not_before: dict[int, float] = field(default_factory=dict)
    _served: dict[int, float] = field(default_factory=dict)
    _renewed: float = float("-inf")

    def run(self) -> None:
        """Until asked to stop; every thread has ended and every lease is given back when this returns."""
        while not self.stopping.is_set():
            self._do(self._start_threads, "starting campaigns")
            self._do(self._renew, "renewing leases")
            self._do(self._notice, "looking after answers that come in")
            for errand in self.errands:
                if time.monotonic() >= errand.due:
                    errand.due = time.monotonic() + errand.every_s
                    self._do(errand.run, errand.name)
            self.stopping.wait(LOOK_EVERY_S)
        deadline = time.monotonic() + END_WITHIN_S
        for active in list(self._active.values()):
            active.thread.join(timeout=max(0.0, deadline - time.monotonic()))

    @staticmethod
    def _do(deed: Callable[[], object], name: str) -> None:
        try:
            deed()
        except Exception:
            log.exception("The engine failed while %s; it tries again.", name)
            connection.close()

    def _start_threads(self) -> None:
        for pk in [pk for pk, active in self._active.items() if not active.thread.is_alive()]:
            self._served[pk] = time.monotonic()
            del self._active[pk]
        if len(self._active) >= MOST_THREADS:
            return
        waiting = self._waiting()
        working = [active for active in self._active.values() if not active.runner.asking]
        free = min(THREADS - len(working), MOST_THREADS - len(self._active))
        for campaign in waiting[:max(0, free)]:
            fence = services.engine_lease(campaign=campaign)
            if fence is not None:
                self._start(campaign.pk, fence)
        leaving = sum(active.runner.aside.is_set() for active in working)
        if len(waiting) > max(0, free) + leaving:
            self._make_room(working)

    def _waiting(self) -> list[Campaign]:
        """Campaigns that could go on, those of people and those that waited longest first."""
        now = time.monotonic()
        waiting = [campaign for campaign in services.campaigns_to_run()
                   if campaign.pk not in self._active and now >= self._not_before.get(campaign.pk, 0.0)
                   and self._settled.get(campaign.pk) != marker(campaign)]
        return sorted(waiting, key=lambda campaign: (
            is_background(campaign), self._served.get(campaign.pk, 0.0), campaign.pk))

    @staticmethod
    def _make_room(working: list[Active]) -> None:
        """Ask whoever has had a place the longest to go on later."""
        eldest = min((active for active in working if not active.runner.aside.is_set()),
                     key=lambda active: active.since, default=None)
        if eldest is not None and time.monotonic() - eldest.since >= TURN_S:
            eldest.runner.aside.set()

    def _notice(self) -> None:
        """Tell agents at work that their campaign was paused or stopped."""
        asking = {pk: active.runner for pk, active in self._active.items() if active.runner.asking}
        if asking:
            for pk, state, version in Campaign.objects.filter(pk__in=asking).values_list("pk", "state", "version"):
                asking[pk].noticed(state, version)

    def _start(self, pk: int, fence: int) -> None:
        runner = CampaignRunner(pk=pk, fence=fence, stopping=self.stopping.is_set, wait=self.stopping.wait)
        thread = threading.Thread(target=self._drive, args=(runner,), name=f"campaign-{pk}", daemon=True)
        self._active[pk] = Active(thread, runner)
        thread.start()

    def _drive(self, runner: CampaignRunner) -> None:
        """The body of a campaign's thread."""
        pk = runner.pk
        try:
            runner.run()
            campaign = Campaign.objects.get(pk=pk)
            services.engine_release(campaign=campaign, fence=runner.fence)
            self._failures.pop(pk, None)
            if not (self.stopping.is_set() or runner.aside.is_set()) and runner.seen is not None:
                self._settled[pk] = runner.seen  # told anything since the last look, it is looked at again
        except LeaseLost as lost:
            log.warning("Campaign %s: %s", pk, lost)
        except Exception as error:
            log.exception("Campaign %s: the engine failed; rows are as they were before the last step.", pk)
            self._failed(runner, error)
        finally:
            connection.close()

    def _failed(self, runner: CampaignRunner, error: Exception) -> None:
        """Try again later and later; a person is asked after the fourth time in a row."""
        count = self._failures[runner.pk] = self._failures.get(runner.pk, 0) + 1
        self._not_before[runner.pk] = time.monotonic() + FIRST_DELAY_S * 2 ** min(count, 5)
        campaign = Campaign.objects.get(pk=runner.pk)
        if count >= FAILURES_UNTIL_PAUSE:
            self._failures.pop(runner.pk)
            self._do(lambda: pause_broken(campaign, runner.fence, error), "pausing a campaign it could not drive")
        services.engine_release(campaign=campaign, fence=runner.fence)

    def _renew(self) -> None:
        if time.monotonic() - self._renewed < RENEW_EVERY_S:
            return
        self._renewed = time.monotonic()
        for pk, active in self._active.items():
            try:
                services.engine_renew(campaign=Campaign(pk=pk), fence=active.runner.fence)
            except LeaseLost:
                active.runner.lost.set()


def pause_broken(campaign: Campaign, fence: int, error: Exception) -> None:
    """Stop trying and say so on the campaign's page."""
    from apps.bridge import api

    text = error.text if isinstance(error, AppError) else f"{type(error).__name__}: {error}"
    services.engine_tell(campaign=campaign, fence=fence, document=api.engine_result(
        "Paused", code="engine_failed", reason=f"The engine failed {FAILURES_UNTIL_PAUSE} times in a row at the same "
        f"step: {text} Nothing is lost. The log of `manage.py serve` says more; resume to try again."))
