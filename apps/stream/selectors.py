"""Reading the event log."""

from __future__ import annotations

from typing import Any

from apps.stream.models import Event, Progress, Stream


def head(stream: str) -> int:
    """The number of the last event, 0 for an unknown stream."""
    return Stream.objects.filter(pk=stream).values_list("last_seq", flat=True).first() or 0


def events_after(stream: str, after: int, limit: int = 200) -> list[Event]:
    """Events with ``seq > after`` in order."""
    return list(Event.objects.filter(stream_id=stream, seq__gt=after).order_by("seq")[:limit])


def last_events(stream: str, limit: int = 50) -> list[Event]:
    """The newest events, oldest of them first."""
    return list(Event.objects.filter(stream_id=stream).order_by("-seq")[:limit])[::-1]


def frames(stream: str) -> list[Progress]:
    """The last ephemeral frames of a stream."""
    return list(Progress.objects.filter(stream=stream))


def event_document(event: Event) -> dict[str, Any]:
    """The event document of the contracts."""
    at = event.at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"stream": event.stream_id, "seq": event.seq, "kind": event.kind, "v": event.v, "at": at, "data": event.data}
