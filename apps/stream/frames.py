"""Rows of the event log as frames: the same documents for the socket, the polling address and exports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from channels.db import database_sync_to_async

from apps.stream.models import Event, Progress, Stream
from apps.stream.sentences import sentence

PAGE = 200


@dataclass(frozen=True, slots=True)
class EphemeralFrame:
    """The newest frame of one kind; ``n`` grows with every change."""

    kind: str
    n: int
    at: str
    data: dict[str, Any]


def frame_of(event: Event) -> dict[str, Any]:
    """The event document (CONTRACTS section 1) with ``text``, its sentence for a feed."""
    return {"stream": event.stream_id, "seq": event.seq, "kind": event.kind, "v": event.v,
            "at": event.at.isoformat().replace("+00:00", "Z"), "data": event.data,
            "text": sentence(event.kind, event.data)}


def frames_after(stream: str, after: int, limit: int = PAGE) -> list[dict[str, Any]]:
    """Frames with ``seq > after`` in order, at most ``limit``."""
    return [frame_of(event) for event in Event.objects.filter(stream_id=stream, seq__gt=after).order_by("seq")[:limit]]


def head(stream: str) -> int:
    """The last sequence number of ``stream``, 0 where nothing was written yet."""
    return Stream.objects.filter(pk=stream).values_list("last_seq", flat=True).first() or 0


def newest_ephemeral(stream: str) -> list[EphemeralFrame]:
    """The newest ephemeral frame of each kind."""
    return [EphemeralFrame(row.kind, row.n, row.at.isoformat().replace("+00:00", "Z"), row.data)
            for row in Progress.objects.filter(stream=stream)]


durable_frames = database_sync_to_async(frames_after)
head_of = database_sync_to_async(head)
ephemeral_frames = database_sync_to_async(newest_ephemeral)
