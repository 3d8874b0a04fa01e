"""Text of unknown origin, made fit to stand in a document, on a page and in a terminal."""

from __future__ import annotations

import re
import unicodedata

TEXT_KEPT = 800
QUOTE_KEPT = 300
"""Characters of a candidate's own words that a sentence of the judge may carry."""
REASON_KEPT = 2000
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_INVISIBLE = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def visible(character: str) -> bool:
    """Whether a reader sees ``character``: no control, bidirectional, zero-width or surrogate character."""
    return unicodedata.category(character) not in _INVISIBLE


def plain(text: str, kept: int = TEXT_KEPT) -> str:
    """``text`` without control, bidirectional, zero-width and surrogate characters, cut to ``kept`` characters.

    What is left can be written as UTF-8: a lone surrogate could not, and would break every document it gets into.
    Line feeds and tabs stay.
    """
    bounded = _ESCAPE.sub("", text[: 16 * kept])
    cleaned = "".join(c for c in bounded if c in "\n\t" or visible(c)).strip()
    return cleaned if len(cleaned) <= kept else cleaned[: kept - 1] + "…"


def one_line(text: str, kept: int = REASON_KEPT) -> str:
    """``plain`` on one line: whoever reads a list of sentences must see where each of them ends."""
    return " ".join(plain(text, kept).split())


def quoted(text: str, kept: int = QUOTE_KEPT) -> str:
    """A candidate's own words between marks that they cannot contain, so that nobody takes them for the judge's."""
    return "«" + one_line(text, kept).replace("«", "<").replace("»", ">") + "»"


def counted(number: int, word: str) -> str:
    """A number with its noun: ``1 round``, ``2 rounds``, ``0 rounds``. For nouns that take an s."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
