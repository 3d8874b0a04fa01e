"""How ``run`` of a row-wise Triton kernel chooses between kernels, as text: one branch per kernel, the loops last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Path = Literal["loops", "own", "together"]
"""What rows that fit a block take: the kernel for all rows, one of their own, or one for several rows per program."""


@dataclass(frozen=True, slots=True)
class Launches:
    """``split``: few long rows are shared by several programs."""

    path: Path = "loops"
    split: bool = False


@dataclass(frozen=True, slots=True)
class Texts:
    """Parts of an operator's ``run``: its head, the values that a branch needs, the launches (without indentation)."""

    head: str
    loops: str
    own: str
    together: str = ""
    split: str = ""
    parts: str = ""


COUNT = """\
    count = PARAMS["ROWS"]
    if isinstance(count, dict):
        count = count[bucket]
"""


def run_text(launches: Launches, texts: Texts) -> str:
    """The function."""
    values, branches = "", []
    if launches.split:
        values += texts.parts
        branches.append(("rows <= 64 and cols > block", texts.split))
    if launches.path == "together":
        values += COUNT
        branches.append(("cols <= block and count > 1 and rows > 256", texts.together))
    if launches.path != "loops":
        branches.append(("cols <= block", texts.own))
    if not branches:
        return texts.head + _indented(texts.loops, 4)
    lines = [f"    {'elif' if place else 'if'} {condition}:\n{_indented(call, 8)}"
             for place, (condition, call) in enumerate(branches)]
    return texts.head + values + "".join(lines) + "    else:\n" + _indented(texts.loops, 8)


def _indented(text: str, by: int) -> str:
    return "".join(f"{' ' * by}{line}\n" for line in text.rstrip("\n").split("\n"))
