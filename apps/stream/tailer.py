"""One watcher per web process: notices commits of any process and wakes the local consumers concerned.

On SQLite the watcher asks ``PRAGMA data_version`` every 150 ms, which changes when another connection commits and
costs microseconds; only then are the heads of the followed streams read, once for all consumers. Elsewhere the heads
are read once a second. A wake-up carries no data and may be lost or repeated: the rows are the truth, not the wake-up.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
import weakref
from collections import defaultdict
from pathlib import Path

from channels.db import database_sync_to_async
from django.db import connection

from apps.stream.models import Progress, Stream

LOOK_EVERY_S = 0.15
POLL_EVERY_S = 1.0
log = logging.getLogger(__name__)

Head = tuple[int, int]
"""Last sequence number of a stream, and the sum of its ephemeral frames' counters."""


class Tailer:
    """Belongs to one event loop; runs while somebody listens."""

    def __init__(self) -> None:
        self._listeners: dict[str, set[asyncio.Event]] = defaultdict(set)
        self._heads: dict[str, Head] = {}
        self._task: asyncio.Task[None] | None = None

    def join(self, stream: str) -> asyncio.Event:
        """Listen to ``stream``: the event is set whenever something may have come. Read the database after joining."""
        wake = asyncio.Event()
        self._listeners[stream].add(wake)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._watch(), name="stream-tailer")
        return wake

    def leave(self, stream: str, wake: asyncio.Event) -> None:
        """Stop listening; idempotent. The watcher ends with its last listener."""
        self._listeners[stream].discard(wake)
        if not self._listeners[stream]:
            del self._listeners[stream]
            self._heads.pop(stream, None)
        if not self._listeners and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _watch(self) -> None:
        dirty = True
        with contextlib.closing(DataVersion()) as version:
            while True:
                dirty = version.changed() or dirty
                try:
                    if dirty:
                        await self._wake_changed()
                        dirty = False
                except Exception:
                    log.exception("The stream tailer could not look; it tries again.")
                await asyncio.sleep(version.pause_s)

    async def _wake_changed(self) -> None:
        followed = list(self._listeners)
        heads = await read_heads(followed)
        for stream in followed:
            if heads.get(stream, (0, 0)) != self._heads.get(stream):
                self._heads[stream] = heads.get(stream, (0, 0))
                for wake in tuple(self._listeners.get(stream, ())):
                    wake.set()


class DataVersion:
    """Whether the database may have changed since the last question."""

    def __init__(self) -> None:
        self._connection: sqlite3.Connection | None = None
        self._seen: int | None = None
        path = Path(str(connection.settings_dict["NAME"])) if connection.vendor == "sqlite" else None
        if path is not None and path.is_file():
            # A connection of its own, never written through: data_version tells of the commits of all others.
            self._connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        self.pause_s = LOOK_EVERY_S if self._connection is not None else POLL_EVERY_S

    def changed(self) -> bool:
        """``True`` the first time, after a commit of any connection, and always where it cannot be known."""
        if self._connection is None:
            return True
        try:
            (present,) = self._connection.execute("PRAGMA data_version").fetchone()
        except sqlite3.OperationalError:  # locked for a checkpoint: ask again next time
            return False
        changed, self._seen = present != self._seen, present
        return changed

    def close(self) -> None:
        """Release the connection."""
        if self._connection is not None:
            self._connection.close()


@database_sync_to_async
def read_heads(streams: list[str]) -> dict[str, Head]:
    """The head of each of ``streams`` that has any."""
    seqs = dict(Stream.objects.filter(pk__in=streams).values_list("name", "last_seq"))
    frames: dict[str, int] = defaultdict(int)
    for stream, n in Progress.objects.filter(stream__in=streams).values_list("stream", "n"):
        frames[stream] += n
    return {stream: (seqs.get(stream, 0), frames.get(stream, 0)) for stream in {*seqs, *frames}}


_of_loop: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Tailer] = weakref.WeakKeyDictionary()


def tailer() -> Tailer:
    """The tailer of the running event loop."""
    return _of_loop.setdefault(asyncio.get_running_loop(), Tailer())
