"""How often a caller may ask, and how much at a time. Counters live in the web process and forget at a restart."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import ceil

KEYS_KEPT = 4096


class Buckets:
    """A token bucket per key: ``burst`` requests at once, ``per_minute`` in the long run.

    The keys used least recently are forgotten, so that many keys cannot fill the memory.
    """

    def __init__(self, *, per_minute: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = per_minute / 60.0, float(burst), clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, key: str) -> int:
        """0 when the request may go on, otherwise the seconds to wait (at least 1)."""
        with self._lock:
            level, now = self._level(key)
            if level >= 1.0:
                self._put(key, level - 1.0, now)
                return 0
            self._put(key, level, now)
            return max(1, ceil((1.0 - level) / self._rate))

    def _level(self, key: str) -> tuple[float, float]:
        now = self._clock()
        level, since = self._left.get(key, (self._burst, now))
        return min(self._burst, level + (now - since) * self._rate), now

    def _put(self, key: str, level: float, now: float) -> None:
        self._left[key] = (level, now)
        self._left.move_to_end(key)
        while len(self._left) > KEYS_KEPT:
            self._left.popitem(last=False)


class Places:
    """How many requests of one key, and of all, may be in work at a time."""

    def __init__(self, *, each: int, together: int) -> None:
        self._each, self._together = each, together
        self._taken: dict[str, int] = {}
        self._lock = threading.Lock()

    @contextmanager
    def place(self, key: str) -> Iterator[bool]:
        """``True`` inside while the key has a place, ``False`` when there is none."""
        with self._lock:
            free = self._taken.get(key, 0) < self._each and sum(self._taken.values()) < self._together
            if free:
                self._taken[key] = self._taken.get(key, 0) + 1
        try:
            yield free
        finally:
            if free:
                with self._lock:
                    self._taken[key] -= 1
                    if not self._taken[key]:
                        del self._taken[key]
