"""How long a failing question is asked again: waits that grow, heed ``Retry-After``, end with the patience, and can be
broken off at any moment."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 30.0
LOOK_S = 0.1
"""How often somebody who waits looks whether to stop."""


class Stopped(Exception):
    """Somebody asked to stop while waiting."""


class Patience:
    """The time that one question may fail for. ``jitter`` gives numbers from 0 to 1, so that campaigns which failed
    together do not come back together."""

    def __init__(self, seconds: float, *, clock: Callable[[], float] = time.monotonic,
                 jitter: Callable[[], float] = random.random) -> None:
        self._clock, self._jitter = clock, jitter
        self._until = clock() + seconds
        self.failures = 0

    def wait_s(self, asked: float | None) -> float | None:
        """How long to wait after one more failure, ``None`` when the patience ends before. ``asked`` is what the
        endpoint asks for; asking sooner would fail for sure, so a long one ends the patience at once."""
        growing = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(self.failures, 10))
        self.failures += 1
        wait = max(asked or 0.0, growing * (0.75 + 0.25 * self._jitter()))
        return wait if self._clock() + wait < self._until else None


def sleep(seconds: float, cancelled: Callable[[], bool], *, clock: Callable[[], float] = time.monotonic,
          pause: Callable[[float], None] = time.sleep) -> None:
    """Wait, looking often whether to stop.

    Raises:
        Stopped: ``cancelled`` said so.
    """
    until = clock() + seconds
    while (left := until - clock()) > 0:
        if cancelled():
            raise Stopped
        pause(min(LOOK_S, left))
    if cancelled():
        raise Stopped


class Slots:
    """The places at each endpoint of a process; who finds none waits."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, int], threading.BoundedSemaphore] = {}
        self._lock = threading.Lock()

    @contextmanager
    def place(self, url: str, parallel: int, cancelled: Callable[[], bool]) -> Iterator[None]:
        """One of ``parallel`` places for as long as the block runs.

        Raises:
            Stopped: ``cancelled`` said so while waiting.
        """
        with self._lock:
            places = self._places.setdefault((url, parallel), threading.BoundedSemaphore(parallel))
        while not places.acquire(timeout=LOOK_S):
            if cancelled():
                raise Stopped
        try:
            yield
        finally:
            places.release()
