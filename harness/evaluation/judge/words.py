"""Where wrong elements lie, in words a person can act on. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import torch

AXIS = {
    "rows": "row",
    "cols": "column",
    "dim": "column",
    "batch": "sequence",
    "q_heads": "query head",
    "kv_heads": "cache head",
    "max_seq": "position",
    "seq": "position",
    "vocab": "class",
    "k": "rank",
}
TILES = (1024, 512, 256, 128, 64, 32, 16, 8)
"""Sizes of blocks that kernels work in, largest first."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """How much of ``counted`` is in use for every index of ``axis``: ``values`` is an integer vector."""

    axis: str
    counted: str
    values: torch.Tensor


@dataclass(frozen=True, slots=True)
class Pattern:
    """``code`` is one of ``all_wrong``, ``length_wrong``, ``head_wrong``, ``tail_wrong``, ``every_nth_wrong``,
    ``tile_wrong``, ``row_wrong`` and ``numeric_wrong``; the first one that fits, in this order."""

    code: str
    words: str


@dataclass(frozen=True, slots=True)
class _Touched:
    """The indices of one axis under which anything is wrong; ``last`` marks the innermost axis."""

    name: str
    size: int
    indices: list[int]
    last: bool

    @property
    def word(self) -> str:
        return AXIS.get(self.name, self.name)

    @property
    def consecutive(self) -> bool:
        return self.indices[-1] - self.indices[0] == len(self.indices) - 1

    @property
    def step(self) -> int | None:
        """The distance between evenly spaced indices, at least three of them and further apart than one."""
        if len(self.indices) < 3 or self.consecutive:
            return None
        step = self.indices[1] - self.indices[0]
        return step if self.indices == list(range(self.indices[0], self.indices[-1] + 1, step)) else None

    @property
    def tile(self) -> int | None:
        """The largest block size whose whole blocks, cut off at the end of the axis, make up the indices."""
        inside = set(self.indices)
        for tile in TILES:
            blocks = {index // tile for index in inside}
            whole = sum(min(tile, self.size - block * tile) for block in blocks)
            if tile < self.size and whole == len(inside):
                return tile
        return None


def pattern_of(wrong: torch.Tensor, axes: tuple[str, ...], lengths: Lengths | None = None) -> Pattern:
    """Describe a mask with at least one wrong element; ``axes`` names its dimensions."""
    count, total = int(wrong.sum()), wrong.numel()
    if count == total:
        return Pattern("all_wrong", "every element" if total > 1 else "the only element")
    limited = [touched for touched in _touched(wrong, axes) if len(touched.indices) < touched.size]
    counted = next((touched for touched in limited if lengths and touched.name == lengths.axis), None)
    share, places, by_length = f"{count} of {total} elements", [], None
    if counted is not None and lengths is not None:
        by_length = _length_words(counted, lengths)
        if by_length is None and _all_but_empty(counted, lengths):
            limited.remove(counted)
            by_all = f"in every {counted.word} that is not empty"
            if not limited and count == len(counted.indices) * (total // counted.size):
                return Pattern("all_wrong", f"{share}, {by_all}")
            places.append(by_all)
    places += [by_length if by_length and touched is counted else _place(touched) for touched in limited]
    text = f"{share}, {' and '.join(places)}" if places else f"{share}, scattered over all axes"
    return Pattern("length_wrong" if by_length else _code(limited), text)


def _touched(wrong: torch.Tensor, axes: tuple[str, ...]) -> list[_Touched]:
    found = []
    for axis, name in enumerate(axes):
        others = [other for other in range(wrong.dim()) if other != axis]
        touched = wrong.amax(dim=others) if others else wrong
        indices = torch.nonzero(touched).flatten().tolist()
        found.append(_Touched(name, wrong.shape[axis], indices, axis == len(axes) - 1))
    return found


def _code(limited: list[_Touched]) -> str:
    """The code of the first kind of place that fits any axis."""
    if any("head" in touched.name for touched in limited):
        return "head_wrong"
    if any(touched.last and _is_tail(touched) for touched in limited):
        return "tail_wrong"
    if any(touched.step for touched in limited):
        return "every_nth_wrong"
    if any(touched.last and touched.tile for touched in limited):
        return "tile_wrong"
    return "row_wrong" if any(not touched.last for touched in limited) else "numeric_wrong"


def _is_tail(touched: _Touched) -> bool:
    return touched.indices[0] > 0 and touched.consecutive and touched.indices[-1] == touched.size - 1


def _parted(axis: _Touched, lengths: Lengths) -> tuple[list[int], list[int]]:
    """Lengths where something is wrong, and where everything is right."""
    values, inside = lengths.values.tolist(), set(axis.indices)
    if len(values) != axis.size:
        return [], []
    return [values[index] for index in axis.indices], [v for index, v in enumerate(values) if index not in inside]


def _all_but_empty(axis: _Touched, lengths: Lengths) -> bool:
    """Whether only those with nothing in use are right, which says nothing about lengths."""
    return set(_parted(axis, lengths)[1]) == {0}


def _length_words(axis: _Touched, lengths: Lengths) -> str | None:
    """Words where one length parts wrong from right. With fewer than two right lengths besides none at all, anything
    would seem to be parted."""
    wrong, right = _parted(axis, lengths)
    if len({value for value in right if value > 0}) < 2:
        return None
    unit = AXIS.get(lengths.counted, lengths.counted)
    some = f"{len(wrong)} of {axis.size} {axis.word}s"
    if min(wrong) > max(right):
        return f"only in {axis.word}s of at least {min(wrong)} {unit}s ({some}; right up to {max(right)})"
    if max(wrong) < min(right):
        return f"only in {axis.word}s of at most {max(wrong)} {unit}s ({some}; right from {min(right)})"
    return None


def _place(touched: _Touched) -> str:
    """Words for one axis."""
    indices, size, word = touched.indices, touched.size, touched.word
    if len(indices) == 1:
        last = " (the last)" if indices[0] == size - 1 else ""
        return f"only in {word} {indices[0]} of {size}{last}"
    tile = touched.tile
    if touched.consecutive:
        if indices[-1] == size - 1:
            return f"only in the last {len(indices)} of {size} {word}s (from {indices[0]})"
        block = f", in whole blocks of {tile}" if tile else ""
        if indices[0] == 0:
            return f"only in the first {len(indices)} of {size} {word}s{block}"
        return f"only in {word}s {indices[0]} to {indices[-1]} of {size}{block}"
    if touched.step:
        return f"in every {_ordinal(touched.step)} {word} from {indices[0]}"
    if tile:
        blocks = len({index // tile for index in indices})
        return f"in {blocks} blocks of {tile} {word}s, the first at {indices[0]}"
    return f"in {len(indices)} of {size} {word}s"


def _ordinal(number: int) -> str:
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
