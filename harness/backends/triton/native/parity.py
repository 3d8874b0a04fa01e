"""Whether a file launches natively what its plan says, and what its host code costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.backends.triton.compiler.binaries import binaries_of
from harness.backends.triton.compiler.process import CompilerProcess
from harness.backends.triton.launcher.binary import Binary
from harness.backends.triton.native.compare import differences, expected_launches, only_code_differs
from harness.backends.triton.native.process import NativeFailed, ask_native
from harness.backends.triton.targets import Target
from harness.domain.errors import InfrastructureError
from harness.domain.plan import LaunchPlan
from harness.domain.vocabulary import Backend
from harness.operators.base import OperatorSpec, ShapePoint, Workload

if TYPE_CHECKING:
    from harness.evaluation.ports import Lent

CALLS = 50
COMPILED_AGAIN = 3
"""How often the plan is compiled anew where nothing but machine code differs: some kernels compile to several codes."""


@dataclass(frozen=True, slots=True)
class ParityResult:
    """``host_us``: median microseconds from a call of ``run`` to the end of its last kernel, device idle before;
    ``first_call_s``: seconds of the first call, compilation included; both ``None`` where the candidate did not get
    that far. ``walls`` stood around the native process."""

    same: bool
    differences: tuple[str, ...]
    host_us: float | None = None
    first_call_s: float | None = None
    walls: tuple[str, ...] = ()


def parity(
    source: str, spec: OperatorSpec, workload: Workload, point: ShapePoint, plan: LaunchPlan,
    binaries: Sequence[Binary], target: Target, *, seed: int, deadline_s: float = 120.0,
) -> ParityResult:
    """Call ``source`` natively on contents of ``point`` and hold it against ``plan``, recorded for the same dense
    arguments, and its ``binaries``. ``seed`` decides the contents, which mix the workload's regimes.

    Raises:
        InfrastructureError: this host cannot do it; nothing was compared.
    """
    from harness.evaluation.judge.inputs import all_attributes, make_inputs
    from harness.evaluation.judge.lending import Lending

    dtype = workload.dtypes[Backend.TRITON]
    attributes = all_attributes(spec, point.attributes)
    inputs = make_inputs(spec, point.dims, workload.regimes_of(point), attributes, dtype, seed, "parity", point.label)
    with Lending(spec, inputs, attributes, dtype) as lending:
        return compare_native(source, lending.lent, attributes, plan, binaries, target, deadline_s=deadline_s)


def compare_native(
    source: str, lent: Sequence[Lent], attributes: Mapping[str, float], plan: LaunchPlan, binaries: Sequence[Binary],
    target: Target, *, deadline_s: float = 120.0,
) -> ParityResult:
    """``parity`` on arrays that are lent already.

    Raises:
        InfrastructureError: this host cannot do it; nothing was compared.
    """
    arguments = [{"dtype": item.dtype, "shape": list(item.shape), "strides": list(item.strides),
                  "offset": item.offset, "nbytes": item.nbytes, "fd": item.fd} for item in lent]
    launches = [step["launch"] for step in plan.steps if "launch" in step]
    request = {"source": source, "arguments": arguments, "attributes": dict(attributes), "calls": CALLS,
               "capability": target.capability,
               "launches": [{key: launch[key] for key in ("signature", "args", "num_ctas")} for launch in launches]}
    try:
        answer = ask_native(request, [item.fd for item in lent], deadline_s=deadline_s)
    except NativeFailed as failed:
        return ParityResult(False, (str(failed),))
    device = str(answer.get("device", target.title))
    if not device.startswith(target.title):
        raise InfrastructureError(f"This host's GPU is {device}, the plan is for {target.title}. Nothing was compared. "
                                  "Name the host's own hardware.")
    return judge(answer, plan, binaries, target)


def judge(answer: Mapping[str, Any], plan: LaunchPlan, binaries: Sequence[Binary], target: Target) -> ParityResult:
    """What a native process's answer amounts to; where only machine code differs, the plan is compiled anew."""
    calls = answer.get("calls")
    if not (isinstance(calls, list) and len(calls) == 2 and all(map(_is_call, calls))):
        return ParityResult(False, ("The native process's answer does not hold two calls.",))
    found: list[str] = []
    if answer.get("compiler", plan.compiler) != plan.compiler:
        found.append(f"The native compiler is {answer['compiler']}, the plan was recorded with {plan.compiler}.")
    for words, seen in zip(("The first call", "The second call"), calls, strict=True):
        expected = expected_launches(plan, binaries)
        for _ in range(COMPILED_AGAIN):
            if not only_code_differs(expected, seen):
                break
            again = binaries_of([plan], CompilerProcess(target))[0]
            for ours, theirs, fresh in zip(expected, seen, expected_launches(plan, again), strict=True):
                if ours["code"] != theirs["code"]:
                    ours["code"] = fresh["code"]
        found += differences(expected, seen, words)
    return ParityResult(not found, tuple(found), _number(answer.get("host_us")), _number(answer.get("first_call_s")),
                        tuple(map(str, answer.get("walls") or ())))


def _is_call(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(launch, dict) for launch in value)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < 1e12 and math.isfinite(value) else None
