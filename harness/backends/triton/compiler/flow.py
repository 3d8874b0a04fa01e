"""Whether every program of a compiled kernel waits for the launch before it: paths through PTX, from entry to an end.

The IR says where the author put the wait, but code that follows from undefined behaviour (a division by a number that
is always zero decides a branch) is taken out by the compiler, a wait in it with everything else: such a program runs
into a fault or on for ever, if it is run at all. So the compiler's result is asked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

WAIT, TRIGGER = "griddepcontrol.wait", "griddepcontrol.launch_dependents"
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_LINE = re.compile(r"^\s*\.(?:loc|file)\b[^\n]*", re.MULTILINE)
"""The directives that a line's end ends, not a semicolon."""
_ENTRY = re.compile(r"\.entry\b[^{]*\{")
_LABEL = re.compile(r"([\w$%]+)\s*:(?!:)")
_STEP = re.compile(r"(?:(@!?[\w$%]+)\s+)?([\w.:]+)\s*([^;]*)")
_ENDS = ("ret", "exit", "trap")
_NOWHERE = -1

Scope = tuple[int, ...]


@dataclass
class _Body:
    """Instructions of one function: guard, opcode, operands and the braces around it. Labels are known by their braces
    and their names, as inline assembly has labels of its own; lists of targets by their labels."""

    steps: list[tuple[str, str, str, Scope]] = field(default_factory=list)
    labels: dict[tuple[Scope, str], int] = field(default_factory=dict)
    end: int = 0

    def place(self, scope: Scope, label: str) -> int:
        """The instruction behind ``label``, seen from ``scope``."""
        for depth in range(len(scope), -1, -1):
            if (scope[:depth], label) in self.labels:
                return self.labels[scope[:depth], label]
        return _NOWHERE


_REGISTER = re.compile(r"%[\w.]+")
_PARAMETER = re.compile(r"_param_(\d+)")
_ADDRESS = re.compile(r"\[([^\]]*)\]")
_MEMORY = {"ld", "ldu", "st", "atom", "red", "cp", "prefetch"}
_ELSEWHERE = {"param", "shared", "shared::cta", "local", "const"}
_SHARED = "shared"
"""Stands for whatever lies in shared memory, where addresses change threads."""


def every_program_waits(ptx: str, *, specialised: bool) -> bool:
    """Whether there is a wait in the entry function of ``ptx``, and no path through it that ends without one. Waits of
    other functions do not count; whatever cannot be read is a path without one.

    ``specialised``: the kernel has warps that work for the others. The first branch tells these apart, and a program
    lasts as long as any of them: one side has to wait.
    """
    entry = _entry(ptx)
    return entry is not None and any(_waits(*entry, start) for start in _starts(entry[0], specialised))


def touched_before_waiting(ptx: str, *, specialised: bool) -> tuple[int, ...]:
    """Numbers of the parameters that addresses come from which a program reads or writes before it waits, in the entry
    function; where ``specialised``, by the side that waits."""
    entry = _entry(ptx)
    if entry is None:
        return ()
    body, calls_end = entry
    sources, found = _sources(body), set[int]()
    for start in _starts(body, specialised):
        if specialised and not _waits(body, calls_end, start):
            continue
        for number in _unwaited(body, start):
            _, opcode, operands, _ = body.steps[number]
            if _is_memory(opcode):
                for name in _names(" ".join(_ADDRESS.findall(operands))):
                    found |= sources.get(name, set()) if name[0] == "%" else {int(name)}
    return tuple(sorted(found))


def triggers(ptx: str) -> bool:
    """Whether ``ptx`` lets the next launch begin early anywhere."""
    return TRIGGER in _COMMENT.sub("", ptx)


def _read(text: str, at: int) -> _Body:
    """The function whose body begins at ``at``, right behind its brace."""
    body, braces = _Body(), 0
    scope: Scope = ()
    while True:
        while at < len(text) and text[at].isspace():
            at += 1
        if at >= len(text) or (text[at] == "}" and not scope):
            body.end = at
            return body
        label = _LABEL.match(text, at)
        if text[at] == "{":
            braces += 1
            scope, at = (*scope, braces), at + 1
        elif text[at] == "}":
            scope, at = scope[:-1], at + 1
        elif label is not None:
            body.labels[scope, label[1]] = len(body.steps)
            at = label.end()
        else:
            stop = text.find(";", at)
            stop = len(text) if stop < 0 else stop
            step = _STEP.match(text, at, stop)
            body.steps.append((step[1] or "", step[2], step[3], scope) if step else ("", "?", "", scope))
            at = stop + 1


def _entry(ptx: str) -> tuple[_Body, bool] | None:
    """The entry function, and whether other functions may end a thread."""
    text = _LINE.sub("", _COMMENT.sub("", ptx))
    entry = _ENTRY.search(text)
    if entry is None:
        return None
    body = _read(text, entry.end())
    others = text[:entry.start()] + text[body.end:]
    return body, re.search(r"\b(?:exit|trap)\s*;", others) is not None


def _starts(body: _Body, specialised: bool) -> list[int]:
    fork = next((n for n, (guard, opcode, _, _) in enumerate(body.steps) if guard and opcode.startswith("bra")), None)
    return [0] if fork is None or not specialised else _after(body, fork)


def _unwaited(body: _Body, start: int) -> set[int]:
    """The instructions that paths from ``start`` reach without a wait, the waits themselves included."""
    pending, seen = [start], set[int]()
    while pending:
        number = pending.pop()
        if number in seen or not 0 <= number < len(body.steps):
            continue
        seen.add(number)
        guard, opcode, _, _ = body.steps[number]
        if (opcode == WAIT or opcode.partition(".")[0] in _ENDS) and not guard:
            continue
        pending += _after(body, number)
    return seen


def _is_memory(opcode: str) -> bool:
    """Whether an instruction reads or writes what other programs see."""
    kind, *parts = opcode.split(".")
    return kind in _MEMORY and ("global" in parts or _ELSEWHERE.isdisjoint(parts))


def _names(text: str) -> list[str]:
    """Registers, and parameters by their numbers."""
    return [*_REGISTER.findall(text), *_PARAMETER.findall(text)]


def _sources(body: _Body) -> dict[str, set[int]]:
    """Per register the parameters that its value is made of, wherever it is set; what was read from memory is new."""
    moves: list[tuple[list[str], list[str]]] = []
    for _, opcode, operands, _ in body.steps:
        kind, *parts = opcode.split(".")
        first, _, rest = operands.partition("}" if operands.startswith("{") else ",")
        if kind in ("ld", "ldmatrix") and _SHARED in opcode:
            moves.append((_names(first), [_SHARED]))
        elif kind in ("st", "stmatrix") and _SHARED in opcode:
            moves.append(([_SHARED], _names(rest)))
        elif kind not in _MEMORY or "param" in parts:
            moves.append((_names(first), _names(rest)))
    found: dict[str, set[int]] = {}
    growing = True
    while growing:
        growing = False
        for targets, given in moves:
            known = set[int]().union(*(found.get(name, set()) if not name.isdigit() else {int(name)} for name in given))
            for name in targets:
                if not known <= found.setdefault(name, set()):
                    found[name] |= known
                    growing = True
    return found


def _after(body: _Body, number: int) -> list[int]:
    """Where the instruction may lead; ``_NOWHERE`` where that cannot be read."""
    guard, opcode, operands, scope = body.steps[number]
    kind = opcode.partition(".")[0]
    if kind == "bra":
        targets = [body.place(scope, operands.strip())]
    elif kind == "brx":
        targets = _listed(body, scope, operands.rpartition(",")[2].strip())
    else:
        return [number + 1]
    return [*targets, number + 1] if guard else targets


def _listed(body: _Body, scope: Scope, name: str) -> list[int]:
    place = body.place(scope, name)
    if place == _NOWHERE or place >= len(body.steps) or body.steps[place][1] != ".branchtargets":
        return [_NOWHERE]
    return [body.place(scope, label.strip()) for label in body.steps[place][2].split(",")]


def _waits(body: _Body, calls_end: bool, start: int) -> bool:
    """Whether paths from ``start`` come to a wait, and none ends, or gets lost, before."""
    pending, seen, found = [start], set[int](), False
    while pending:
        number = pending.pop()
        if number in seen:
            continue
        seen.add(number)
        if not 0 <= number < len(body.steps):
            return False  # behind the last instruction, or nowhere
        guard, opcode, _, _ = body.steps[number]
        kind = opcode.partition(".")[0]
        if opcode == WAIT and not guard:
            found = True
            continue
        if kind in _ENDS or opcode == "?" or (kind == "call" and calls_end):
            return False
        pending += _after(body, number)
    return found
