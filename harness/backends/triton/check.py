"""Validates a recorded plan, which comes from a process that a candidate shared, before anything believes it."""

from __future__ import annotations

from typing import Any

from harness.backends.triton.check_launch import Contradiction, check_launch
from harness.backends.triton.recorder.session import MOST_IR_BYTES, MOST_STEPS
from harness.domain.codec import check_schema, from_document
from harness.domain.errors import DocumentError
from harness.domain.plan import LaunchPlan

ITEM_BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2, "int64": 8, "int32": 4, "int16": 2, "int8": 1,
              "uint8": 1, "bool": 1}


class PlanForged(Exception):
    """The plan contradicts itself or what was asked for."""


def read_plan(document: Any, arguments: list[dict[str, Any]], target: str) -> LaunchPlan:
    """The plan, after checking schema, buffers, offsets and the arguments that were asked for.

    Raises:
        PlanForged: with what is wrong.
    """
    _check_size(document)
    try:
        check_schema(document, "plan")
        plan = from_document(document, LaunchPlan)
    except DocumentError as error:
        raise PlanForged(error.text) from error
    if plan.target != target:
        raise PlanForged(f"it is made for {plan.target}, not {target}")
    if sum(map(len, (plan.irs or {}).values())) > MOST_IR_BYTES:
        raise PlanForged(f"its kernels are longer than {MOST_IR_BYTES} bytes")
    _check_buffers(plan, arguments)
    for step in plan.steps:
        _check_step(plan, step)
    return plan


def _check_size(document: Any) -> None:
    """Bound the lists first: a schema takes minutes over a hundred thousand steps."""
    for name in ("steps", "buffers", "refusals", "irs"):
        part = document.get(name) if isinstance(document, dict) else None
        if isinstance(part, list | dict) and len(part) > MOST_STEPS:
            raise PlanForged(f"it has {len(part)} {name}, more than {MOST_STEPS}")


def _check_buffers(plan: LaunchPlan, arguments: list[dict[str, Any]]) -> None:
    for position, buffer in enumerate(plan.buffers):
        if buffer.id != position or buffer.bytes < 0:
            raise PlanForged(f"buffer {position} is numbered {buffer.id} and has {buffer.bytes} bytes")
        if position < len(arguments):
            asked = arguments[position]
            given = (buffer.kind, buffer.dtype, list(buffer.shape), list(buffer.strides), buffer.offset, buffer.bytes)
            if given != (asked["kind"], asked["dtype"], list(asked["shape"]), list(asked["strides"]), *_place(asked)):
                raise PlanForged(f"buffer {position} is not the argument '{asked['name']}' that was given")
        elif buffer.kind not in ("scratch", "global_scratch"):
            raise PlanForged(f"buffer {position} claims to be an {buffer.kind}")
    if len(plan.buffers) < len(arguments):
        raise PlanForged("buffers of arguments are missing")


def _place(argument: dict[str, Any]) -> tuple[int, int]:
    """Bytes before the array and bytes of the whole buffer."""
    item, offset, shape = ITEM_BYTES[argument["dtype"]], argument.get("offset", 0), argument["shape"]
    span = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, argument["strides"], strict=True))
    return offset * item, (offset + span) * item


def _check_step(plan: LaunchPlan, step: dict[str, Any]) -> None:
    if "fill" in step:
        fill = step["fill"]
        buffer = _buffer(plan, fill["buffer"], fill["offset"])
        if buffer.kind == "input":
            raise PlanForged("it fills an input")
        if fill["bytes"] < 1 or fill["offset"] + fill["bytes"] > buffer.bytes:
            raise PlanForged(f"a fill leaves buffer {buffer.id}")
        return
    try:
        check_launch(step["launch"])
    except Contradiction as error:
        raise PlanForged(str(error)) from error
    for argument in step["launch"]["args"]:
        where = argument.get("tensormap", argument)
        if "buffer" in where:
            _buffer(plan, where["buffer"], where["offset"])


def _buffer(plan: LaunchPlan, number: int, offset: int) -> Any:
    if not 0 <= number < len(plan.buffers):
        raise PlanForged(f"it names buffer {number}, which does not exist")
    buffer = plan.buffers[number]
    if not 0 <= offset <= buffer.bytes:
        raise PlanForged(f"offset {offset} is outside buffer {number} of {buffer.bytes} bytes")
    return buffer
