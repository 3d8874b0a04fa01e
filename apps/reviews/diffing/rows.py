"""Rows of the side-by-side diff, with folds and with what is pinned to lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any

from apps.reviews.diffing.intraline import align, changed_ranges
from apps.reviews.diffing.tokens import Piece, highlight, mark

CONTEXT = 3
SHORTEST_FOLD = 4


@dataclass(slots=True)
class Side:
    """One line of one side: its number from 1 and its styled pieces."""

    number: int
    pieces: list[Piece]

    @property
    def text(self) -> str:
        """The line as it stands in the source."""
        return "".join(piece.text for piece in self.pieces)


@dataclass(slots=True)
class Row:
    """One row: ``kind`` is ``same``, ``changed``, ``added`` or ``removed``; ``change`` numbers a change's first row.

    ``pins`` are whatever the caller pinned to the new side's line (or the old side's where it was removed).
    """

    kind: str
    old: Side | None
    new: Side | None
    change: int | None = None
    pins: list[Any] = field(default_factory=list)

    @property
    def css(self) -> str:
        """The row class of the stylesheet."""
        return {"same": "ctx", "added": "add-row", "removed": "del-row"}.get(self.kind, "")


@dataclass(slots=True)
class Fold:
    """Unchanged rows that start hidden."""

    rows: list[Row]

    @property
    def first(self) -> int:
        """Number of the first hidden line, new side."""
        return self.rows[0].new.number if self.rows[0].new else 0

    @property
    def last(self) -> int:
        """Number of the last hidden line, new side."""
        return self.rows[-1].new.number if self.rows[-1].new else 0


@dataclass(slots=True)
class Diff:
    """Everything a template needs: ``parts`` are rows and folds in order."""

    parts: list[Row | Fold]
    added: int
    removed: int
    changes: int

    @property
    def rows(self) -> list[Row]:
        """All rows, folded ones included."""
        return [row for part in self.parts for row in (part.rows if isinstance(part, Fold) else [part])]

    @property
    def change_of_line(self) -> dict[int, int]:
        """The number of the change that each changed line of the new side belongs to."""
        found, current = {}, 0
        for row in self.rows:
            current = row.change or current
            if row.kind != "same" and row.new is not None:
                found[row.new.number] = current
        return found


def split_lines(source: str) -> list[str]:
    """Lines without their ends; the empty rest after a final newline is no line."""
    lines = source.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def plain_rows(old: str, new: str) -> list[Row]:
    """All rows in order, nothing folded. Every line of both sides stands in exactly one row."""
    left, right = split_lines(old), split_lines(new)
    left_pieces, right_pieces = highlight(old), highlight(new)
    rows: list[Row] = []
    changes = 0
    for tag, low, high, start, stop in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if tag == "equal":
            for i, j in zip(range(low, high), range(start, stop), strict=True):
                rows.append(Row("same", Side(i + 1, left_pieces[i]), Side(j + 1, right_pieces[j])))
            continue
        changes += 1
        first = True
        for a, b in align(left[low:high], right[start:stop]):
            rows.append(
                changed_row(left_pieces, right_pieces, None if a is None else low + a, None if b is None else start + b)
            )
            if first:
                rows[-1].change = changes
                first = False
    return rows


def changed_row(left: list[list[Piece]], right: list[list[Piece]], i: int | None, j: int | None) -> Row:
    """One row of a change; where both sides exist, the words that differ are marked."""
    if i is None and j is not None:
        return Row("added", None, Side(j + 1, right[j]))
    if j is None and i is not None:
        return Row("removed", Side(i + 1, left[i]), None)
    assert i is not None and j is not None
    old, new = Side(i + 1, left[i]), Side(j + 1, right[j])
    gone, come = changed_ranges(old.text, new.text)
    return Row("changed", Side(old.number, mark(old.pieces, gone)), Side(new.number, mark(new.pieces, come)))


def fold(rows: list[Row], context: int) -> list[Row | Fold]:
    """Unchanged stretches further than ``context`` rows from a change or a pin become folds."""
    near = [False] * len(rows)
    for place, row in enumerate(rows):
        if row.kind != "same" or row.pins:
            for other in range(max(0, place - context), min(len(rows), place + context + 1)):
                near[other] = True
    parts: list[Row | Fold] = []
    hidden: list[Row] = []

    def flush() -> None:
        if len(hidden) >= SHORTEST_FOLD:
            parts.append(Fold(list(hidden)))
        else:
            parts.extend(hidden)
        hidden.clear()

    for place, row in enumerate(rows):
        if near[place]:
            flush()
            parts.append(row)
        else:
            hidden.append(row)
    flush()
    return parts


def split_diff(
    old: str,
    new: str,
    *,
    new_pins: Mapping[int, Sequence[Any]] | None = None,
    old_pins: Mapping[int, Sequence[Any]] | None = None,
    context: int = CONTEXT,
) -> Diff:
    """The side-by-side diff of two sources.

    ``new_pins`` and ``old_pins`` map line numbers (from 1) to findings and threads; a pinned line is
    never folded away. Two equal sources give one fold without changes.
    """
    rows = plain_rows(old, new)
    for row in rows:
        if row.new is not None and new_pins:
            row.pins.extend(new_pins.get(row.new.number, ()))
        if row.old is not None and old_pins:
            row.pins.extend(old_pins.get(row.old.number, ()))
    return Diff(
        parts=fold(rows, context),
        added=sum(row.kind in ("added", "changed") for row in rows),
        removed=sum(row.kind in ("removed", "changed") for row in rows),
        changes=sum(row.change is not None for row in rows),
    )
