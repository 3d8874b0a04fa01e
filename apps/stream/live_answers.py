"""Answers of a model while they come in, as ephemeral frames: coalesced, bounded, and whole for whoever follows.

A frame is overwritten by the next, so it carries the *end* of the answer so far and where that end begins. A reader who
missed a few frames still has every character, one who comes late sees the last of it, and nobody is sent the whole
again and again. Nothing here is stored for good: the complete turn is, by whoever keeps turns.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from apps.stream.models import Progress
from apps.stream.services import progress_put

KIND = "agent.delta"
EVERY_S = 0.25
TAIL_CHARACTERS = 1600
MOST_PIECES = 64
"""Pieces of a frame: an answer that changes between text and thoughts with every character would make a long one."""
STALE_AFTER = timedelta(seconds=30)

Put = Callable[..., None]


@dataclass(slots=True)
class _Answer:
    name: dict[str, int | str]
    pieces: list[tuple[str, str]] = field(default_factory=list)  # (kind, text); neighbours differ in kind
    dropped: int = 0  # characters before the first piece
    shown: float = float("-inf")
    dirty: bool = False


class LiveAnswers:
    """The answers that come in for one campaign, one per sample. Safe to use from several threads.

    ``told`` writes at most every ``EVERY_S`` seconds per sample; what waits is written by the next ``told``, by
    ``flush`` (cheap, meant for a loop that asks anyway whether to go on) or by ``end``.
    """

    def __init__(self, stream: str, *, put: Put = progress_put, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._put = put
        self._clock = clock
        self._answers: dict[int, _Answer] = {}
        self._lock = threading.Lock()

    def begin(self, *, round: int, attempt: int, sample: int, number: int) -> None:
        """Turn ``number`` of this asking is sent now; its answer starts empty. The same turn may be sent again after
        a kill or when a person steered: ``id`` tells readers that it is another answer."""
        name: dict[str, int | str] = {"round": round, "attempt": attempt, "sample": sample, "number": number}
        with self._lock:
            self._answers[sample] = _Answer({**name, "id": secrets.token_hex(4)})
            self._write(sample)

    def told(self, kind: str, text: str, sample: int = 0) -> None:
        """A piece came: ``text``, ``reasoning`` or ``call``. Ignored for a sample that did not begin."""
        with self._lock:
            answer = self._answers.get(sample)
            if answer is None or not text:
                return
            text = storable(text)
            if answer.pieces and answer.pieces[-1][0] == kind:
                answer.pieces[-1] = (kind, answer.pieces[-1][1] + text)
            else:
                answer.pieces.append((kind, text))
            answer.dropped += _shorten(answer.pieces)
            answer.dirty = True
            if self._clock() - answer.shown >= EVERY_S:
                self._write(sample)

    def flush(self) -> None:
        """Write what waited long enough."""
        with self._lock:
            for sample, answer in self._answers.items():
                if answer.dirty and self._clock() - answer.shown >= EVERY_S:
                    self._write(sample)

    def end(self, sample: int = 0) -> None:
        """The answer is over, however it ended: readers put it away and read the stored turn."""
        with self._lock:
            answer = self._answers.pop(sample, None)
            if answer is not None:
                self._put(stream=self._stream, kind=kind_of(sample), data={**answer.name, "over": True})

    def _write(self, sample: int) -> None:
        answer = self._answers[sample]
        answer.shown, answer.dirty = self._clock(), False
        self._put(stream=self._stream, kind=kind_of(sample), data={
            **answer.name, "from": answer.dropped,
            "pieces": [{"kind": kind, "text": text} for kind, text in answer.pieces]})


def storable(text: str) -> str:
    """``text`` with what no JSON column and no socket takes (NUL, half a character) replaced, one by one."""
    return text.replace("\x00", "␀").encode("utf-8", "replace").decode("utf-8")


def _shorten(pieces: list[tuple[str, str]]) -> int:
    """Drop characters from the front until the tail fits; how many."""
    whole = sum(len(text) for _, text in pieces)
    over = max(whole - TAIL_CHARACTERS, whole - sum(len(text) for _, text in pieces[-MOST_PIECES:]))
    left = over
    while left > 0:
        kind, text = pieces[0]
        if len(text) <= left:
            pieces.pop(0)
            left -= len(text)
        else:
            pieces[0] = (kind, text[left:])
            left = 0
    return max(over, 0)


def kind_of(sample: int) -> str:
    """The row of a sample: rows are one per stream and kind."""
    return KIND if sample == 0 else f"{KIND}.{sample}"


def is_stale(frame: Progress) -> bool:
    """Whether an answer's frame is left over from an engine that was killed: nothing more will come of it."""
    return frame.kind.startswith(KIND) and datetime.now(UTC) - frame.at > STALE_AFTER


def public_kind(kind: str) -> str:
    """The kind that readers get, without the sample."""
    return KIND if kind.startswith(KIND) else kind

