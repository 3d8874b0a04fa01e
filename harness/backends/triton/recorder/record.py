"""Calls ``run`` twice under the recorder and makes the plan document of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import triton

from harness.backends.triton.recorder.modes import AllocationMode, DeviceMode
from harness.backends.triton.recorder.session import ACTIVE, Session
from harness.backends.triton.recorder.standin import StandIn
from harness.backends.triton.targets import Target


def record(
    run: Callable[..., Any],
    target: Target,
    arguments: Sequence[Mapping[str, Any]],
    attributes: Mapping[str, float],
    first: int = 0,
) -> dict[str, Any]:
    """The plan of one set of argument shapes.

    ``arguments`` are documents with ``name``, ``kind`` (input or output), ``dtype``, ``shape``, ``strides``
    and ``offset`` (elements from the start of their buffer). ``first`` numbers the calls of this process.
    An exception of the candidate's own passes through; refusals end up in the plan.
    """
    one = _call(run, first, arguments, attributes)
    refusals, second_call = list(one.refusals), "same"
    if not refusals:
        two = _call(run, first + 1, arguments, attributes)
        refusals += two.refusals
        difference = _difference(one, two)
        if difference and not refusals:
            second_call = "differs"
            refusals.append(
                {
                    "code": "second_call",
                    "line": _line_of(run),
                    "text": f"A second call with equal arguments does something else: {difference}. run() keeps no "
                    "state between calls.",
                }
            )
    if not refusals and not any("launch" in step for step in one.steps):
        refusals.append(
            {
                "code": "nothing_launched",
                "line": _line_of(run),
                "text": "run() launched no kernel function, so its outputs would stay unwritten.",
            }
        )
    return {
        "version": 1,
        "target": target.label,
        "compiler": f"triton {triton.__version__}",
        "second_call": second_call,
        "buffers": [buffer.document() for buffer in one.buffers],
        "steps": one.steps,
        "refusals": refusals,
        "irs": one.irs,
    }


def _call(
    run: Callable[..., Any], number: int, arguments: Sequence[Mapping[str, Any]], attributes: Mapping[str, float]
) -> Session:
    session = Session(number)
    values = [_stand_in(session, argument) for argument in arguments]
    ACTIVE.session = session
    try:
        with AllocationMode(session), DeviceMode(session):
            result = run(*values, **attributes)
            if result is not None:
                text = "run() returns something. It fills its outputs and returns None."
                session.note("returns_value", text, _line_of(run))
    except BaseException:
        if not session.refusals:  # after a refusal, whatever the candidate made of it is of no interest
            raise
    finally:
        ACTIVE.session = None
    return session


def _line_of(run: Callable[..., Any]) -> int | None:
    """Where the candidate defines ``run``."""
    return getattr(getattr(run, "__code__", None), "co_firstlineno", None)


def _stand_in(session: Session, argument: Mapping[str, Any]) -> StandIn:
    dtype = getattr(torch, argument["dtype"])
    shape, strides, offset = argument["shape"], argument["strides"], argument.get("offset", 0)
    span = offset + (1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) if 0 not in shape else 0)
    whole = torch.empty(span, dtype=dtype, device="meta")
    inner = whole.as_strided(shape, strides, offset)
    size = inner.element_size()
    buffer = session.allocate(
        argument["kind"],
        argument["name"],
        span * size,
        tuple(shape),
        tuple(strides),
        argument["dtype"],
        offset * size,
    )
    return StandIn(buffer, inner, session.number)


def _difference(one: Session, two: Session) -> str | None:
    """The first difference in words; buffers are numbered in order of allocation in both."""
    for what, left, right in (
        ("buffers", [b.document() for b in one.buffers], [b.document() for b in two.buffers]),
        ("steps", one.steps, two.steps),
    ):
        if len(left) != len(right):
            return f"{len(left)} {what} at first, {len(right)} then"
        for position, (a, b) in enumerate(zip(left, right, strict=True)):
            if json.dumps(a, sort_keys=True) != json.dumps(b, sort_keys=True):
                return f"{what[:-1]} {position} differs"
    return None
