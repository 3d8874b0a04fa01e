"""Softmax as data: row-wise exp(x - max) / sum(exp(x - max))."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from harness.domain.vocabulary import Backend
from harness.operators.base import (
    Argument,
    Buckets,
    Dims,
    OperatorSpec,
    ShapePoint,
    Span,
    TileDemand,
    Tolerance,
    Tunable,
    Workload,
)
from harness.operators.softmax.cases import CASES, INTERPRET_CASES, WRONG_KERNELS


def _bytes(dims: Dims, itemsize: int) -> int:
    """Compulsory traffic of one call: x read once, out written once."""
    return 2 * dims["rows"] * dims["cols"] * itemsize


def _flops(dims: Dims) -> int:
    """Comparison, subtraction, exponential, addition and division count one each per element."""
    return 5 * dims["rows"] * dims["cols"]


def _tile(params: Mapping[str, object], dims: Dims, itemsize: int) -> TileDemand:
    """One program holds BLOCK columns: at least one fp32 copy of them is live across the reduction."""
    block, warps = int(params.get("BLOCK", 1024)), int(params.get("num_warps", 4))  # type: ignore[call-overload]
    per_thread = -(-block // (32 * warps))
    shared = 4 * warps
    return TileDemand(
        shared_bytes=shared,
        registers_per_thread=per_thread + 16,
        text=f"{block} columns over {32 * warps} threads are {per_thread} fp32 values a thread, all live across the "
        f"reduction, plus at least 16 registers for addresses and masks; the reduction across {warps} warps takes "
        f"{warps} x 4 = {shared} bytes of shared memory",
    )


SPEC = OperatorSpec(
    name="softmax",
    version="1",
    title="Softmax",
    formula="out = exp(x - max(x)) / sum(exp(x - max(x)))",
    semantics="Row-wise over the last dimension. x may have strided rows. A row that is all -inf gives NaN, as torch "
    "does; single -inf entries give 0; a NaN makes its whole row NaN. +inf in x is outside the domain. "
    "Zeros of either sign are equal.",
    arguments=(
        Argument("x", "input", ("rows", "cols"), strided=True),
        Argument("out", "output", ("rows", "cols")),
    ),
    attributes=(),
    workloads={
        "llm": Workload(
            name="llm",
            title="Attention scores and token probabilities",
            shapes={
                Backend.NUMBA: (
                    ShapePoint("256x4096", {"rows": 256, "cols": 4096}, 0.5),
                    ShapePoint("64x8192", {"rows": 64, "cols": 8192}, 0.3),
                    ShapePoint("512x1024", {"rows": 512, "cols": 1024}, 0.2),
                ),
                Backend.TRITON: (
                    ShapePoint("4096x4096", {"rows": 4096, "cols": 4096}, 0.4),
                    ShapePoint("8192x8192", {"rows": 8192, "cols": 8192}, 0.4),
                    ShapePoint("32x128256", {"rows": 32, "cols": 128256}, 0.2),
                ),
            },
            dtypes={Backend.NUMBA: "float32", Backend.TRITON: "bfloat16"},
            regimes=("normal", "offset", "spike", "masked", "masked_run"),
            note="Score matrices of 1k to 8k positions; on a GPU also the next token's probabilities of 32 sequences "
            "over Llama 3's vocabulary. The CPU's rows are fewer so that a call takes under 5 ms on one core.",
        )
    },
    cases=CASES,
    interpret_cases=INTERPRET_CASES,
    tolerances={
        "float32": Tolerance(
            "float32",
            factor=4.0,
            ulps=8.0,
            cap=1e-3,  # room for serial sums of 100,000 terms, as in rms_norm
            reason="An exponential of argument a inherits a relative error of |a| roundings from the subtraction of "
            "the maximum, a polynomial or table adds a few, the sum sqrt(cols) at most.",
        ),
        "bfloat16": Tolerance(
            "bfloat16",
            factor=4.0,
            ulps=2.0,
            cap=1e-2,
            reason="One rounding of the result to bfloat16 (2^-8 relative) and room for one more; sums in bfloat16 are "
            "far outside.",
        ),
        "float16": Tolerance(
            "float16",
            factor=4.0,
            ulps=2.0,
            cap=4e-3,
            reason="One rounding of the result to float16 (2^-11 relative) and room for one more, subnormal results "
            "to one step.",
        ),
    },
    tunables=(
        Tunable("BLOCK", (Backend.TRITON,), 256, 32768, power_of_two=True, note="columns per loop step"),
        Tunable("num_warps", (Backend.TRITON,), 1, 32, power_of_two=True, note="warps per program"),
        Tunable("num_stages", (Backend.TRITON,), 1, 8, note="software pipelining depth"),
        Tunable("ROWS", (Backend.TRITON,), 1, 16, power_of_two=True, note="rows per program where they fit one block"),
        Tunable("PARTS", (Backend.TRITON,), 2, 64, power_of_two=True, note="programs that share one long row"),
        Tunable("BLOCK", (Backend.NUMBA,), 1, 32768, power_of_two=True, note="independent partial results per row"),
    ),
    # A vocabulary's row does not fit the registers of one block; what is best for it is bad for the others.
    buckets=Buckets("cols", (("short", 1024), ("medium", 4096), ("long", 16384), ("vocabulary", None))),
    bytes_per_call=_bytes,
    flops_per_call=_flops,
    reduction_length=lambda dims: dims["cols"],
    tile=_tile,
    wrong_kernels=WRONG_KERNELS,
    implementation="harness.operators.softmax.implementation",
    folder=Path(__file__).parent,
    row_factor=True,
    # Up to the last power of two that a vocabulary needs, and more rows than a grid's second axis can count.
    domain={"cols": Span(1, 131072), "rows": Span(1, 70000)},
)
