"""Python source as lines of styled pieces. Only a few classes are used; the stylesheet colours them."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from pygments.lexers.python import PythonLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, String, _TokenType


class Piece(NamedTuple):
    """A stretch of one line: its text, its token class ('' is plain) and whether the change touches it."""

    text: str
    css: str
    marked: bool = False


CLASSES: tuple[tuple[_TokenType, str], ...] = (
    (Comment, "cm"),
    (Name.Decorator, "d"),
    (Name.Function, "f"),
    (Name.Builtin, "f"),
    (Number, "m"),
    (String, "s"),
    (Keyword, "k"),
    (Operator.Word, "k"),
)


def css_class(kind: _TokenType) -> str:
    """The class of a Pygments token type, '' for plain text."""
    return next((css for family, css in CLASSES if kind in family), "")


def highlight(source: str) -> list[list[Piece]]:
    """One list of pieces per line of ``source.split("\\n")``; joining texts and lines gives the source back.

    The lexer runs on the whole source, so that strings over several lines keep their class. It is
    told to add and strip nothing.
    """
    lines: list[list[Piece]] = [[]]
    lexer = PythonLexer(stripnl=False, stripall=False, ensurenl=False)
    for _, kind, value in lexer.get_tokens_unprocessed(source):
        css = css_class(kind)
        for place, text in enumerate(value.split("\n")):
            if place:
                lines.append([])
            if text:
                lines[-1].append(Piece(text, css))
    return lines


def mark(pieces: list[Piece], ranges: list[tuple[int, int]]) -> list[Piece]:
    """``pieces`` split at the borders of ``ranges`` (character offsets in the line), those inside marked."""
    if not ranges:
        return pieces
    result: list[Piece] = []
    at = 0
    for piece in pieces:
        end = at + len(piece.text)
        cuts = sorted({at, end, *(cut for span in ranges for cut in span if at < cut < end)})
        for low, high in pairwise(cuts):
            inside = any(start <= low and high <= stop for start, stop in ranges)
            result.append(Piece(piece.text[low - at : high - at], piece.css, inside))
        at = end
    return result
