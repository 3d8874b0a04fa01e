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
}


@dataclass(frozen=True, slots=True)
class Pattern:
    """``code``: ``all_wrong``, ``tail_wrong``, ``head_wrong``, ``row_wrong`` or ``numeric_wrong``."""

    code: str
    words: str


def pattern_of(wrong: torch.Tensor, axes: tuple[str, ...]) -> Pattern:
    """Describe a mask with at least one wrong element; ``axes`` names its dimensions."""
    count, total = int(wrong.sum()), wrong.numel()
    if count == total:
        return Pattern("all_wrong", "every element" if total > 1 else "the only element")
    code, places = "numeric_wrong", []
    for axis, name in enumerate(axes):
        others = [other for other in range(wrong.dim()) if other != axis]
        touched = wrong.amax(dim=others) if others else wrong
        indices = torch.nonzero(touched).flatten().tolist()
        size = wrong.shape[axis]
        if len(indices) == size:
            continue
        word = AXIS.get(name, name)
        places.append(_place(indices, size, word))
        if axis == len(axes) - 1 and _is_tail(indices, size):
            code = "tail_wrong"
        elif code == "numeric_wrong" and axis < len(axes) - 1:
            code = "head_wrong" if "head" in name else "row_wrong"
    share = f"{count} of {total} elements"
    return Pattern(code, f"{share}, {' and '.join(places)}" if places else f"{share}, scattered over all axes")


def _is_tail(indices: list[int], size: int) -> bool:
    return indices[0] > 0 and indices == list(range(indices[0], size))


def _place(indices: list[int], size: int, word: str) -> str:
    if len(indices) == 1:
        last = " (the last)" if indices[0] == size - 1 else ""
        return f"only in {word} {indices[0]} of {size}{last}"
    if indices == list(range(indices[0], indices[-1] + 1)):
        if indices[-1] == size - 1:
            return f"only in the last {len(indices)} of {size} {word}s (from {indices[0]})"
        if indices[0] == 0:
            return f"only in the first {len(indices)} of {size} {word}s"
        return f"only in {word}s {indices[0]} to {indices[-1]} of {size}"
    step = indices[1] - indices[0]
    if len(indices) > 2 and step > 1 and indices == list(range(indices[0], indices[-1] + 1, step)):
        return f"in every {step}th {word} from {indices[0]}"
    return f"in {len(indices)} of {size} {word}s"
