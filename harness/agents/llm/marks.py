"""Code fences and written calls in a model's text, read in one pass: a text may be made to keep a pattern busy."""

from __future__ import annotations

from dataclasses import dataclass

FENCES = ("```", "~~~")
OPEN, CLOSE = "<tool_call>", "</tool_call>"


@dataclass(frozen=True, slots=True)
class Fenced:
    """``blocks`` between fences, ``outside`` what is not in one, ``unclosed``: the text ends inside of one."""

    blocks: tuple[str, ...]
    outside: str
    unclosed: bool


def fenced(text: str) -> Fenced:
    """A fence is closed by the same mark alone on a line."""
    blocks: list[str] = []
    outside: list[str] = []
    inside: list[str] = []
    mark = ""
    for line in text.split("\n"):
        bare = line.strip()
        if mark and bare == mark:
            blocks.append("".join(f"{kept}\n" for kept in inside))
            mark, inside = "", []
        elif mark:
            inside.append(line)
        elif bare.startswith(FENCES):
            mark = bare[:3]
        else:
            outside.append(line)
    return Fenced(tuple(blocks), "\n".join(outside).strip(), bool(mark))


@dataclass(frozen=True, slots=True)
class Tagged:
    """``bodies`` between ``<tool_call>`` and its end, ``outside`` the rest, ``unclosed``: one has no end."""

    bodies: tuple[str, ...]
    outside: str
    unclosed: bool


def tagged(text: str) -> Tagged:
    """Written calls in order."""
    bodies: list[str] = []
    outside: list[str] = []
    at = 0
    while (start := text.find(OPEN, at)) >= 0:
        outside.append(text[at:start])
        end = text.find(CLOSE, start)
        if end < 0:
            return Tagged(tuple(bodies), "".join(outside).strip(), True)
        bodies.append(text[start + len(OPEN):end].strip())
        at = end + len(CLOSE)
    return Tagged(tuple(bodies), "".join([*outside, text[at:]]).strip(), False)
