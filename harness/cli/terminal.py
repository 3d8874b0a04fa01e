"""What the commands print, fit for a terminal: texts of candidates, reports and paths cannot command it.

While a command runs, its output goes through ``Shown``. Control characters, what reorders or hides text, lone halves of
pairs, and what the terminal's encoding lacks are shown as escapes (``\\x1b``); line feeds and tabs stay, and so does
``CLEAR``, which only the commands themselves write, alone.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from harness.domain.words import visible

CLEAR = "\r\033[K"
"""Back to the beginning of the line, which is wiped."""
_PLAIN = re.compile(r"[\n\t -~]*")


def escaped(text: str) -> str:
    """``text`` with everything that is not plainly visible as an escape; line feeds and tabs stay."""
    if _PLAIN.fullmatch(text):
        return text
    return "".join(c if c in "\n\t" or visible(c) else _escape(c) for c in text)


def _escape(character: str) -> str:
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


class Shown:
    """A text stream that escapes what it is given; everything else is the stream's own."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write ``text``, escaped; the number of its characters."""
        shown = text if text == CLEAR else escaped(text)
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        self._stream.write(shown.encode(encoding, "backslashreplace").decode(encoding))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each of ``lines``."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def shown() -> Iterator[None]:
    """Escape what is printed inside the block."""
    out, err = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = Shown(out), Shown(err)  # type: ignore[assignment]
    try:
        yield
    finally:
        sys.stdout, sys.stderr = out, err
