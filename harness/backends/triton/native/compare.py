"""What a plan says a call launches, against what was seen natively. Pure: documents in, sentences out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.backends.triton.compiler.elf import code_digest
from harness.backends.triton.launcher.binary import Binary
from harness.domain.plan import LaunchPlan

WORDS = {
    "function": "the kernel function", "grid": "the grid", "num_warps": "the number of warps",
    "num_ctas": "the number of CTAs per cluster", "shared_bytes": "dynamic shared memory in bytes",
    "cooperative": "the cooperative launch", "pdl": "the dependent launch", "global_scratch": "global scratch",
    "code": "the machine code",
}
"""Fields of a launch, in the order in which differences are told."""


def expected_launches(plan: LaunchPlan, binaries: Sequence[Binary]) -> list[dict[str, Any]]:
    """The launches of ``plan`` as a native run would show them; ``binaries`` has one per launch."""
    steps = [step["launch"] for step in plan.steps if "launch" in step]
    arguments = sum(buffer.kind in ("input", "output") for buffer in plan.buffers)
    scratch: dict[int, int] = {}
    return [_expected(launch, binary, arguments, scratch) for launch, binary in zip(steps, binaries, strict=True)]


def _expected(launch: Mapping[str, Any], binary: Binary, arguments: int, scratch: dict[int, int]) -> dict[str, Any]:
    *own, global_scratch, _profile = launch["args"]
    return {
        "function": launch["function"], "grid": list(launch["grid"]), "num_warps": binary.num_warps,
        "num_ctas": binary.num_ctas, "shared_bytes": binary.shared_bytes, "cooperative": launch["cooperative"],
        "pdl": launch["pdl"], "global_scratch": "buffer" in global_scratch,
        "code": code_digest(binary.cubin, binary.symbol),
        "args": [_argument(value, arguments, scratch) for value in own],
    }


def _argument(value: Mapping[str, Any], arguments: int, scratch: dict[int, int]) -> dict[str, Any]:
    if "tensormap" in value:
        body = dict(value["tensormap"])
        return {"tensormap": {**_place(body.pop("buffer"), body.pop("offset"), arguments, scratch), **body}}
    if "buffer" in value:
        return _place(value["buffer"], value["offset"], arguments, scratch)
    return dict(value)


def _place(buffer: int, offset: int, arguments: int, scratch: dict[int, int]) -> dict[str, Any]:
    """Arguments keep their number; scratch is numbered by first use, as a native run can tell it apart."""
    if buffer < arguments:
        return {"argument": buffer, "offset": offset}
    return {"scratch": scratch.setdefault(buffer, len(scratch)), "offset": offset}


def differences(expected: Sequence[Mapping[str, Any]], seen: Sequence[Mapping[str, Any]], call: str) -> list[str]:
    """Sentences about what differs; ``call`` begins them ("The first call"). Empty when nothing does."""
    if len(expected) != len(seen):
        names = ", ".join(str(launch.get("function")) for launch in seen) or "nothing"
        return [f"{call} launches {len(seen)} kernels natively ({names}), {len(expected)} by the plan."]
    found = []
    for number, (plan, native) in enumerate(zip(expected, seen, strict=True), 1):
        where = f"{call}, launch {number} ('{plan['function']}')"
        for field, words in WORDS.items():
            if plan[field] != native.get(field):
                found.append(f"{where}: {words} is {_short(native.get(field))} natively, {_short(plan[field])} by the "
                             "plan.")
        found += _argument_differences(where, plan["args"], native.get("args") or [])
    return found


def _argument_differences(where: str, plan: Sequence[Any], native: Sequence[Any]) -> list[str]:
    if len(plan) != len(native):
        return [f"{where}: {len(native)} arguments natively, {len(plan)} by the plan."]
    return [
        f"{where}: argument {position} is {_short(theirs)} natively, {_short(ours)} by the plan."
        for position, (ours, theirs) in enumerate(zip(plan, native, strict=True), 1)
        if ours != theirs
    ]


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 120 else f"{text[:117]}..."


def only_code_differs(expected: Sequence[Mapping[str, Any]], seen: Sequence[Mapping[str, Any]]) -> bool:
    """Whether nothing but machine code differs, and some does: a compiler that is not deterministic looks like that."""
    if len(expected) != len(seen):
        return False
    plain = [[{key: value for key, value in launch.items() if key != "code"} for launch in side]
             for side in (expected, seen)]
    return plain[0] == plain[1] and list(expected) != list(seen)
