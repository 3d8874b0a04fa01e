"""Server-sent events out of bytes, bounded, lenient where servers differ."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from harness.agents.llm.wire.gather import Nonsense

LONGEST_EVENT = 8 << 20
END = "[DONE]"


class Events:
    """Feed it bytes as they come; it gives the events' documents, and ``None`` for the end that a server announces."""

    def __init__(self) -> None:
        self._line = bytearray()
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> Iterator[Any]:
        """The events that are complete with these bytes.

        Raises:
            Nonsense: an event is no JSON, or longer than any may be.
        """
        self._line += data
        self._bound()
        *lines, rest = bytes(self._line).split(b"\n")
        self._line = bytearray(rest)
        for line in lines:
            yield from self._take(line.rstrip(b"\r"))

    def close(self) -> Iterator[Any]:
        """What was complete but for the blank line after it."""
        if self._line:
            yield from self._take(bytes(self._line).rstrip(b"\r"))
            self._line.clear()
        yield from self._flush()

    def _take(self, line: bytes) -> Iterator[Any]:
        if not line:
            yield from self._flush()
        elif line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
            self._size += len(line)
            self._bound()

    def _bound(self) -> None:
        if len(self._line) + self._size > LONGEST_EVENT:
            raise Nonsense(f"one piece of the stream is longer than {LONGEST_EVENT:,} bytes")

    def _flush(self) -> Iterator[Any]:
        lines, self._data, self._size = self._data, [], 0
        if not lines:
            return
        try:
            yield parsed(b"\n".join(lines))
        except Nonsense:
            if len(lines) == 1:
                raise
            for line in lines:  # a server that leaves the blank lines out
                yield parsed(line)


def parsed(data: bytes) -> Any:
    """The document in some bytes, ``None`` for the announced end.

    Raises:
        Nonsense: they hold no JSON.
    """
    text = data.decode("utf-8", "replace").strip()
    if text == END:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise Nonsense("a piece of the answer is not JSON") from None
