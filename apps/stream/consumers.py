"""The live stream of one page: replay, then follow. Read-only; decisions and controls go over HTTP.

Frames to the client are JSON texts. Durable ones are event documents with a gapless ``seq`` (and ``text``, a sentence
for the feed). The others have no ``seq``: ``ready`` and ``beat`` carry the stream's ``head``, ``progress`` and
``agent.delta`` (see ``live_answers``) are the newest of their kind and may be skipped, ``lag`` says that the window is
closed, ``error`` answers a frame that is not understood. The client sends ``{"kind": "ack", "seq": n}`` after events
and after each beat.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from typing import Any
from urllib.parse import parse_qs

from channels.generic.websocket import AsyncWebsocketConsumer

from apps.stream.access import SENTENCES, Close, Denied, Target, admit_async
from apps.stream.frames import PAGE, durable_frames, ephemeral_frames, head_of
from apps.stream.live_answers import is_stale, public_kind
from apps.stream.models import Progress
from apps.stream.tailer import tailer

WINDOW_EVENTS = 256
WINDOW_BYTES = 512 * 1024
FRAME_LIMIT = 4096
EPHEMERAL_EVERY_S = 0.25
BEAT_EVERY_S = 15.0
RECHECK_EVERY_S = 3.0
SILENT_AFTER_S = 60.0
log = logging.getLogger(__name__)


class StreamConsumer(AsyncWebsocketConsumer):
    """One socket. Handlers only note what came; ``_pump`` does all reading and sending."""

    target_kind = "campaign"

    async def connect(self) -> None:
        """Accept, then authorise, join and start pumping: a close before accept would reach the browser as 1006."""
        await self.accept()
        self._wake: asyncio.Event | None = None
        self._pump_task: asyncio.Task[None] | None = None
        self._stream = ""
        query = parse_qs(self.scope["query_string"].decode("latin-1"))
        self._sent = self._acked = _number(query.get("after", ["0"])[0])
        self._in_flight: list[tuple[int, int]] = []  # (seq, bytes) sent and not acknowledged
        self._heard = self._checked = self._beaten = time.monotonic()
        self._frames_seen: dict[str, int] = {}
        self._shown = 0.0
        self._lagging = False
        session = self.scope.get("session")
        self._session_key = getattr(session, "session_key", None)
        self._target = Target(self.target_kind, str(self.scope["url_route"]["kwargs"]["key"]))
        try:
            self._stream = (await admit_async(self._session_key, self._target)).stream
        except Denied as denied:
            # At the door another team's stream is as absent as one that never was.
            await self._end(Close.NOT_FOUND if denied.code is Close.NOT_ALLOWED else denied.code)
            return
        self._wake = tailer().join(self._stream)  # before reading: what is written from here on wakes us
        self._pump_task = asyncio.create_task(self._pump(), name=f"pump {self._stream}")

    async def disconnect(self, code: int) -> None:
        """Leave nothing behind; also called after our own close."""
        if self._pump_task is not None and self._pump_task is not asyncio.current_task():
            self._pump_task.cancel()
        if self._wake is not None:
            tailer().leave(self._stream, self._wake)
            self._wake = None

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Only acknowledgements count; everything else is answered with an error frame and changes nothing."""
        self._heard = time.monotonic()
        if bytes_data is not None or text_data is None:
            await self._complain("binary_frame", "Frames are JSON texts.")
            return
        if len(text_data) > FRAME_LIMIT:
            await self._complain("frame_too_large", f"A frame may have {FRAME_LIMIT} characters, not {len(text_data)}.")
            return
        try:
            document = json.loads(text_data)
            kind, seq = document["kind"], document.get("seq")
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            await self._complain("malformed_frame", 'Expected {"kind": "ack", "seq": <number>}.')
            return
        if kind != "ack":
            await self._complain("unknown_frame", "This socket only takes 'ack' frames; act on the pages.")
        elif not isinstance(seq, int) or isinstance(seq, bool) or not 0 <= seq <= self._sent:
            await self._complain("wrong_ack", f"seq must be a number from 0 to {self._sent}, the last one sent.")
        else:
            self._acked = max(self._acked, seq)
            if self._wake is not None:
                self._wake.set()

    async def _pump(self) -> None:
        wake = self._wake  # the socket's end forgets it, maybe between two steps of this one
        assert wake is not None
        try:
            await self._send({"kind": "ready", "stream": self._stream,
                              "data": {"head": await head_of(self._stream), "after": self._sent}})
            while True:
                wake.clear()
                more = await self._pass_on()
                if not more:
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(wake.wait(), self._patience())
        except Denied as denied:
            await self._end(denied.code)
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("The stream %s broke for one reader; the page reconnects by itself.", self._stream)
            await self.close(1011)

    async def _pass_on(self) -> bool:
        """Send what there is; whether more waits and may be sent at once."""
        now = time.monotonic()
        if now - self._heard > SILENT_AFTER_S:
            raise Denied(Close.SILENT)
        if now - self._checked >= RECHECK_EVERY_S:
            await self._recheck()
        if now - self._beaten >= BEAT_EVERY_S:
            self._beaten = now
            await self._send({"kind": "beat", "data": {"head": await head_of(self._stream)}})
        if not self._window_open():
            if not self._lagging:
                self._lagging = True
                await self._send({"kind": "lag", "data": {"acked": self._acked, "sent": self._sent}})
            return False
        self._lagging = False
        await self._show(now)
        return await self._replay()

    async def _show(self, now: float) -> None:
        """The newest ephemeral frames, at most four a second, before any durable event that waits."""
        if now - self._shown < EPHEMERAL_EVERY_S:
            return
        fresh: list[Progress] = [frame for frame in await ephemeral_frames(self._stream)
                                       if frame.n > self._frames_seen.get(frame.kind, -1) and not is_stale(frame)]
        if not fresh:
            return
        self._shown = now
        for frame in fresh:
            self._frames_seen[frame.kind] = frame.n
            await self._send({"kind": public_kind(frame.kind), "at": frame.at.isoformat(), "data": frame.data})

    async def _replay(self) -> bool:
        room = min(PAGE, WINDOW_EVENTS - len(self._in_flight))
        frames = await durable_frames(self._stream, self._sent, room)
        if frames and time.monotonic() - self._checked > 0.5:
            await self._recheck()  # news is shown only to who may see it now
        for frame in frames:
            size = await self._send(frame)
            self._sent = frame["seq"]
            self._in_flight.append((self._sent, size))
            if not self._window_open():
                return False
        return len(frames) == room

    def _window_open(self) -> bool:
        self._in_flight = [(seq, size) for seq, size in self._in_flight if seq > self._acked]
        return len(self._in_flight) < WINDOW_EVENTS and sum(size for _, size in self._in_flight) < WINDOW_BYTES

    async def _recheck(self) -> None:
        await admit_async(self._session_key, self._target)
        self._checked = time.monotonic()

    def _patience(self) -> float:
        """Seconds until something is due without any wake-up."""
        now = time.monotonic()
        due = [self._checked + RECHECK_EVERY_S, self._beaten + BEAT_EVERY_S, self._shown + EPHEMERAL_EVERY_S]
        return max(0.05, min(moment - now for moment in due if moment > now)) if max(due) > now else 0.05

    async def _complain(self, code: str, text: str) -> None:
        await self._send({"kind": "error", "data": {"code": code, "text": text}})

    async def _end(self, code: Close) -> None:
        await self._send({"kind": "error", "data": {"code": str(int(code)), "text": SENTENCES[code]}})
        await self.close(int(code))

    async def _send(self, frame: dict[str, Any]) -> int:
        # An event may quote a model, and half a character of it must not cut off everybody who follows.
        text = json.dumps(frame, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace").decode("utf-8")
        await self.send(text_data=text)
        return len(text)


class TeamStreamConsumer(StreamConsumer):
    """``/ws/teams/<slug>/``."""

    target_kind = "team"


def _number(text: str) -> int:
    """A sequence number from the address; nonsense means from the beginning, which only costs a replay."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0
