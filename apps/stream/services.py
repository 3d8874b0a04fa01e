"""Writing the event log.

The number of an event is taken by ``UPDATE ... SET last_seq = last_seq + 1`` as the first statement of the
transaction whose change it reports: that takes the stream's row lock, so numbers follow the order of commits and
have no gaps, on SQLite and PostgreSQL alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from apps.stream.models import Event, Progress, Stream


class Log:
    """The streams locked by one transaction."""

    def __init__(self, reserved: dict[str, int]) -> None:
        self._reserved: dict[str, int | None] = dict(reserved)

    def append(self, stream: str, kind: str, data: dict[str, Any]) -> int:
        """Add a durable event and return its number. The stream must be one that the transaction opened with."""
        if stream not in self._reserved:
            raise ValueError(f"stream {stream} was not named when the transaction began")
        seq = self._reserved[stream]
        if seq is None:
            Stream.objects.filter(pk=stream).update(last_seq=F("last_seq") + 1)
            seq = Stream.objects.values_list("last_seq", flat=True).get(pk=stream)
        self._reserved[stream] = None
        Event.objects.create(stream_id=stream, seq=seq, kind=kind, at=timezone.now(), data=data)
        return seq

    def give_back(self) -> None:
        """Numbers that were reserved and not used; the lock is still held, so nobody took a later one."""
        for stream, seq in self._reserved.items():
            if seq is not None:
                Stream.objects.filter(pk=stream, last_seq=seq).update(last_seq=seq - 1)


@contextmanager
def recording(*streams: str) -> Iterator[Log]:
    """One transaction that changes rows and reports it on ``streams``; locks are taken in name order.

    Not to be nested: services that write events open it, helpers they call receive the log.
    """
    with transaction.atomic():
        reserved = {}
        for name in sorted(set(streams)):
            if not Stream.objects.filter(pk=name).update(last_seq=F("last_seq") + 1):
                Stream.objects.create(name=name, last_seq=1)
            reserved[name] = Stream.objects.values_list("last_seq", flat=True).get(pk=name)
        log = Log(reserved)
        yield log
        log.give_back()


def progress_put(*, stream: str, kind: str, data: dict[str, Any]) -> None:
    """Overwrite the last ephemeral frame of a stream; not an event, may be lost, has no place in any transaction."""
    now = timezone.now()
    changed = Progress.objects.filter(stream=stream, kind=kind).update(n=F("n") + 1, at=now, data=data)
    if not changed:
        Progress.objects.update_or_create(stream=stream, kind=kind, defaults={"n": 1, "at": now, "data": data})
