"""The system-call filter (classic BPF) of candidate processes: refused calls fail with EPERM.

It keeps a candidate from starting processes and programs, tracing, mounting, changing namespaces, opening sockets,
unpinning itself, sharing memory that no limit counts, and from the wide kernel interfaces; compilers and maths need
none of that. Calls newer than the list are "not there".
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
from collections.abc import Collection

from harness.evaluation.sandbox import linux
from harness.evaluation.sandbox.system_calls import (
    ARCHITECTURES,
    ARGUMENTS,
    CLONE3,
    DENIED,
    LAST_KNOWN,
    LEAVING,
    LOCAL_ONLY,
    SPEAKING,
    SPREADING,
    Rule,
    alone,
)

LD_WORD, JUMP_EQUAL, JUMP_GREATER_EQUAL, AND, RETURN = 0x20, 0x15, 0x35, 0x54, 0x06
ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
NUMBER, ARCHITECTURE, ARGUMENTS_AT = 0, 4, 16
"""Offsets in ``struct seccomp_data``; of each argument (8 bytes) the low word counts: both machines put it first."""

Instruction = tuple[int, int, int, int]


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def program(machine: str, *, allowed: Collection[str] = (), one_group: bool = False,
            alone_as: int | None = None, mute_sockets: bool = False) -> bytes:
    """The filter for ``machine`` as BPF instructions (``struct sock_filter`` array).

    ``allowed`` names calls to let through although a list has them; ``one_group`` also refuses ``LEAVING``;
    ``alone_as`` is the pid of a process that has to stay alone: no children, no programs, no shared memory of its own,
    signals to itself only. ``mute_sockets``: local sockets may be opened, bound and listened on, because CUDA does
    not start without that, and are good for nothing.
    """
    column = list(ARCHITECTURES).index(machine)
    calls = {**DENIED, **(LEAVING if one_group else {}), **(SPREADING if alone_as is not None else {})}
    rules = (*ARGUMENTS, *(alone(alone_as) if alone_as is not None else ()))
    if mute_sockets:
        calls = {name: numbers for name, numbers in (calls | SPEAKING).items() if name != "socket"}
        rules = (*rules, LOCAL_ONLY)
    denied = RETURN, 0, 0, ERRNO | errno.EPERM
    code: list[Instruction] = [
        (LD_WORD, 0, 0, ARCHITECTURE), (JUMP_EQUAL, 1, 0, ARCHITECTURES[machine]), (RETURN, 0, 0, KILL),
        (LD_WORD, 0, 0, NUMBER),
    ]
    if machine == "x86_64":  # the x32 numbering would slip past the list
        code += [(JUMP_GREATER_EQUAL, 0, 1, 0x40000000), denied]
    missing = RETURN, 0, 0, ERRNO | errno.ENOSYS
    code += [(JUMP_GREATER_EQUAL, 0, 1, LAST_KNOWN + 1), missing]
    # clone3 hides its flags behind a pointer; "not there" makes the C library use clone
    code += [(JUMP_EQUAL, 0, 1, CLONE3), missing]
    for name, numbers in calls.items():
        if name not in allowed and numbers[column] is not None:
            code += [(JUMP_EQUAL, 0, 1, numbers[column] or 0), denied]
    for rule in rules:
        code += _checked(rule, column, denied)
    code += [(RETURN, 0, 0, ALLOW)]
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in code)


def _checked(rule: Rule, column: int, denied: Instruction) -> list[Instruction]:
    """The instructions of one rule; the call's number is in the accumulator before and after."""
    number = rule.numbers[column]
    if number is None:
        return []
    yes, no = (0, 1) if rule.equal else (1, 0)
    return [
        (JUMP_EQUAL, 0, 5, number), (LD_WORD, 0, 0, ARGUMENTS_AT + 8 * rule.argument), (AND, 0, 0, rule.mask),
        (JUMP_EQUAL, yes, no, rule.value), denied, (LD_WORD, 0, 0, NUMBER),
    ]


def install(*, allowed: Collection[str] = (), one_group: bool = False, alone_as: int | None = None,
            mute_sockets: bool = False) -> None:
    """Put the filter on this process for good; the options are those of ``program``. Needs ``no_new_privs``.

    Raises:
        OSError: the kernel or the architecture has no seccomp filter.
    """
    machine = platform.machine()
    if machine not in ARCHITECTURES:
        raise OSError(errno.ENOSYS, f"no system-call list for {machine}")
    code = program(machine, allowed=allowed, one_group=one_group, alone_as=alone_as, mute_sockets=mute_sockets)
    buffer = ctypes.create_string_buffer(code, len(code))
    filled = _Program(len(code) // 8, ctypes.addressof(buffer))
    linux.prctl(linux.PR_SET_SECCOMP, 2, ctypes.addressof(filled))
