"""Which words differ between two versions of one line, and which changed lines belong together."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

WORD = re.compile(r"\w+|\s+|[^\w\s]")
SIMILAR = 0.45
LARGEST_TABLE = 4_000
LONGEST_LINE = 400

Ranges = list[tuple[int, int]]


def changed_ranges(old: str, new: str) -> tuple[Ranges, Ranges]:
    """Character ranges of ``old`` and ``new`` that the other side does not have, by words.

    Lines that share little are not marked inside at all: a line full of marks says less than none.
    """
    if max(len(old), len(new)) > LONGEST_LINE:
        return [], []
    left, right = WORD.findall(old), WORD.findall(new)
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    if matcher.ratio() < SIMILAR:
        return [], []
    left_at, right_at = offsets(left), offsets(right)
    gone, come = [], []
    for tag, low, high, start, stop in matcher.get_opcodes():
        if tag == "equal":
            continue
        if high > low:
            gone.append((left_at[low], left_at[high]))
        if stop > start:
            come.append((right_at[start], right_at[stop]))
    return gone, come


def offsets(words: list[str]) -> list[int]:
    """Where each word starts, and the length of the line at the end."""
    result = [0]
    for word in words:
        result.append(result[-1] + len(word))
    return result


def similarity(old: str, new: str) -> float:
    """Between 0 and 1, on the stripped lines, by words; blank lines resemble nothing."""
    left, right = WORD.findall(old.strip()), WORD.findall(new.strip())
    if not left or not right:
        return 0.0
    return SequenceMatcher(None, left, right, autojunk=False).ratio()


def align(old: list[str], new: list[str]) -> list[tuple[int | None, int | None]]:
    """Pairs (index in ``old``, index in ``new``) of a replaced block, in order; ``None`` where a side has no partner.

    The pairing keeps the order and maximises the summed similarity; blocks too large for the table
    are paired by position.
    """
    if len(old) * len(new) > LARGEST_TABLE:
        return by_position(len(old), len(new))
    gains = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    alike = [[similarity(a, b) for b in new] for a in old]
    for i in range(len(old) - 1, -1, -1):
        for j in range(len(new) - 1, -1, -1):
            paired = alike[i][j] + gains[i + 1][j + 1] if alike[i][j] >= SIMILAR else -1.0
            gains[i][j] = max(gains[i + 1][j], gains[i][j + 1], paired)
    pairs: list[tuple[int | None, int | None]] = []
    i = j = 0
    while i < len(old) and j < len(new):
        if alike[i][j] >= SIMILAR and gains[i][j] == alike[i][j] + gains[i + 1][j + 1]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif gains[i][j] == gains[i + 1][j]:
            pairs.append((i, None))
            i += 1
        else:
            pairs.append((None, j))
            j += 1
    pairs += [(place, None) for place in range(i, len(old))]
    pairs += [(None, place) for place in range(j, len(new))]
    return close_gaps(pairs)


def by_position(left: int, right: int) -> list[tuple[int | None, int | None]]:
    """The i-th with the i-th; what is left over stands alone."""
    return [(i if i < left else None, i if i < right else None) for i in range(max(left, right))]


def close_gaps(pairs: list[tuple[int | None, int | None]]) -> list[tuple[int | None, int | None]]:
    """Between two true pairs, lone old lines and lone new lines share rows, so that the diff stays short."""
    result: list[tuple[int | None, int | None]] = []
    lone_old: list[int] = []
    lone_new: list[int] = []

    def flush() -> None:
        for a, b in by_position(len(lone_old), len(lone_new)):
            result.append((None if a is None else lone_old[a], None if b is None else lone_new[b]))
        lone_old.clear()
        lone_new.clear()

    for old, new in pairs:
        if old is not None and new is not None:
            flush()
            result.append((old, new))
        elif old is not None:
            lone_old.append(old)
        elif new is not None:
            lone_new.append(new)
    flush()
    return result
