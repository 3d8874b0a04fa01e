"""Feasibility from PARAMS alone (R18): impossible plans are refused before anything is compiled, with the sum shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.backends.triton.targets import Target, find_target
from harness.domain.verdict import Reason
from harness.domain.vocabulary import Backend, Outcome, Stage
from harness.evaluation.run import Refused, Run
from harness.operators.base import Buckets, Dims, OperatorSpec

ITEMSIZE = {"float32": 4, "int32": 4, "float16": 2, "bfloat16": 2, "int64": 8, "float64": 8}
DEFAULT_WARPS = 4


@dataclass(frozen=True, slots=True)
class Feasibility:
    """Whether a block can run at all. ``text`` shows the sum; ``code`` names the limit that is broken, else empty.

    ``shared_bytes`` per block, ``registers`` per thread, ``threads`` per block; ``None`` where nothing was computed.
    """

    feasible: bool
    text: str
    code: str = ""
    shared_bytes: int | None = None
    registers: int | None = None
    threads: int | None = None


def matmul_shared_bytes(block_m: int, block_n: int, block_k: int, itemsize: int, stages: int = 1) -> int:
    """Shared memory of a tiled product: (BLOCK_M x BLOCK_K + BLOCK_K x BLOCK_N) x element size per stage, in bytes."""
    return stages * (block_m * block_k + block_k * block_n) * itemsize


def accumulator_registers(block_m: int, block_n: int, threads: int) -> int:
    """32-bit registers per thread of a float32 accumulator of BLOCK_M x BLOCK_N spread over ``threads``."""
    return -(-block_m * block_n // threads)


def values_for(params: Mapping[str, Any], dims: Dims, buckets: Buckets | None) -> dict[str, Any]:
    """PARAMS as they apply to ``dims``: a table over shape buckets is replaced by the value of the bucket."""
    chosen = None
    if buckets is not None and buckets.dim in dims:
        size = dims[buckets.dim]
        chosen = next((name for name, bound in buckets.bounds if bound is None or size <= bound), None)
    return {key: value[chosen] if isinstance(value, Mapping) and chosen in value else value
            for key, value in params.items()}


def check_feasibility(
    spec: OperatorSpec, backend: Backend, params: Mapping[str, Any], dims: Dims, target: str | Target | None = None,
    *, dtype: str = "bfloat16",
) -> Feasibility:
    """What one block of a candidate with ``params`` needs for sizes ``dims``, held against ``target``.

    ``params`` may hold tables over the operator's buckets. On a CPU nothing is allotted per block, so every
    numba plan is feasible. Pure; agents call it too.

    Raises:
        UsageError: ``target`` names no known GPU.
    """
    if backend is not Backend.TRITON or spec.tile is None:
        return Feasibility(True, "No memory or registers are allotted per block here, so nothing can be exceeded.")
    device = target if isinstance(target, Target) else find_target(target)
    values = values_for(params, dims, spec.buckets)
    try:
        demand = spec.tile(values, dims, ITEMSIZE[dtype])
        warps = int(values.get("num_warps", DEFAULT_WARPS))
    except (TypeError, ValueError, ZeroDivisionError, KeyError) as error:
        text = (f"PARAMS cannot be computed with: {type(error).__name__}: {error}. Use positive whole numbers, or a "
                "table with every declared bucket.")
        return Feasibility(False, text, "params_unusable")
    threads = warps * device.warp
    if warps < 1 or warps & (warps - 1):
        return Feasibility(False, f"num_warps is {warps}; Triton takes powers of two from 1 to "
                                  f"{device.threads_per_block // device.warp}.", "params_unusable")
    code, text = _broken(demand.shared_bytes, demand.registers_per_thread, threads, device)
    total = demand.registers_per_thread * threads
    sums = (f"{demand.text}; {demand.registers_per_thread} registers x {threads} threads = {total:,} of "
            f"{device.registers_per_sm:,}, {demand.shared_bytes:,} of {device.shared_optin:,} bytes of shared memory")
    return Feasibility(not code, f"{text} {_sentence(sums)}" if code else _sentence(sums), code, demand.shared_bytes,
                       demand.registers_per_thread, threads)


def _broken(shared: int, registers: int, threads: int, device: Target) -> tuple[str, str]:
    if threads > device.threads_per_block:
        return "threads_infeasible", (f"A block has {threads:,} threads and {device.title} allows "
                                      f"{device.threads_per_block:,}. Use fewer warps.")
    if shared > device.shared_optin:
        return "shared_infeasible", (f"A block needs {shared:,} bytes of shared memory and {device.title} has "
                                     f"{device.shared_optin:,}. Use smaller tiles or fewer stages.")
    if registers > device.registers_per_thread:
        return "registers_infeasible", (f"A thread needs {registers:,} registers and can have "
                                        f"{device.registers_per_thread}. Use smaller tiles or more warps.")
    if registers * threads > device.registers_per_sm:
        return "registers_infeasible", (f"A block needs {registers * threads:,} registers and {device.title} has "
                                        f"{device.registers_per_sm:,}. Use smaller tiles or fewer warps.")
    return "", ""


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


def arithmetic(run: Run) -> None:
    """Refuse a candidate whose PARAMS cannot run on the target for some shape of the workload.

    Raises:
        Refused: ``resource_infeasible`` with the sum.
    """
    backend = run.request.backend
    dtype = run.workload.dtypes[backend]
    for point in run.workload.shapes[backend]:
        result = check_feasibility(run.spec, backend, run.params, point.dims, run.target, dtype=dtype)
        if not result.feasible:
            reason = Reason(code=result.code, stage=Stage.ARITHMETIC, case=point.label, text=result.text)
            raise Refused(Outcome.RESOURCE_INFEASIBLE, reason)
