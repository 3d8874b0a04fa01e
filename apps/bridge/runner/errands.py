"""Small recurring duties of the engine process."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from apps.bridge.runner.keys import keys_there
from apps.bridge.runner.mirror import mirror_repair
from apps.campaigns.canary.services import canary_sweep
from apps.campaigns.jobs.workers import worker_beat
from apps.kernels.models import Promotion
from apps.reviews.services import champions_recheck, gate_sweep

log = logging.getLogger(__name__)


def beat() -> None:
    """Report the engine alive, and which endpoints' keys it has."""
    keys = keys_there(os.environ, settings.ENDPOINTS_PATH)
    worker_beat(name="engine", kind="engine", environment={"keys": keys})


def sweep() -> None:
    """Stale requests, finished verifications, lapsed spot checks."""
    gate_sweep()


def canary() -> None:
    """Keep the canary's readings, and order those that are due."""
    canary_sweep()


def recheck() -> None:
    """A new evaluator version or environment class verifies every champion anew, in the background."""
    ordered = champions_recheck()
    if ordered:
        log.info("%d champions are verified again: the evaluator or its place changed.", ordered)


@dataclass
class MirrorErrand:
    """Repairs the mirror at the first call and whenever a promotion was added; rows are never touched."""

    folder: Path
    _seen: int | None = None

    def __call__(self) -> None:
        """Compare, and repair when something is new."""
        newest = Promotion.objects.order_by("-id").values_list("id", flat=True).first() or 0
        if newest != self._seen:
            changed = mirror_repair(self.folder)
            self._seen = newest
            if changed:
                log.info("The git mirror in %s was brought in line: %d refs.", self.folder, changed)
