"""Rows of the event log as frames: the same documents for the socket, the polling address and exports."""

from __future__ import annotations

from typing import Any

from channels.db import database_sync_to_async

from apps.stream import selectors
from apps.stream.models import Event
from apps.stream.sentences import sentence

PAGE = 200


def frame_of(event: Event) -> dict[str, Any]:
    """The event document with ``text``, its sentence for a feed."""
    return selectors.event_document(event) | {"text": sentence(event.kind, event.data)}


def frames_after(stream: str, after: int, limit: int = PAGE) -> list[dict[str, Any]]:
    """Frames with ``seq > after`` in order, at most ``limit``."""
    return [frame_of(event) for event in selectors.events_after(stream, after, min(limit, PAGE))]


durable_frames = database_sync_to_async(frames_after)
head_of = database_sync_to_async(selectors.head)
ephemeral_frames = database_sync_to_async(selectors.frames)
