"""RMSNorm as data: y = x / sqrt(mean(x^2) + eps) * weight, row by row."""

from __future__ import annotations

from pathlib import Path

from harness.domain.vocabulary import Backend
from harness.operators.base import (
    Argument,
    Attribute,
    Dims,
    OperatorSpec,
    ShapePoint,
    Tolerance,
    Tunable,
    Workload,
)
from harness.operators.rms_norm.cases import CASES, INTERPRET_CASES, WRONG_KERNELS
from harness.operators.rows import BUCKETS, DOMAIN, row_tile, row_tunables


def _bytes(dims: Dims, itemsize: int) -> int:
    """Compulsory traffic of one call: x read, weight read, out written once."""
    return (2 * dims["rows"] * dims["cols"] + dims["cols"]) * itemsize


def _flops(dims: Dims) -> int:
    """Square and add, then two multiplications per element."""
    return 4 * dims["rows"] * dims["cols"]


SPEC = OperatorSpec(
    name="rms_norm",
    version="1",
    title="RMSNorm",
    formula="out = x * rsqrt(mean(x^2) + eps) * weight",
    semantics="Row-wise over the last dimension. x may have strided rows; the result is rounded once to x's dtype; "
    "sums accumulate in float32. A NaN in a row makes that row NaN and no other. A NaN or an "
    "infinity in weight makes its column so. +inf in x is outside the domain. Zeros of either sign are equal.",
    arguments=(
        Argument("x", "input", ("rows", "cols"), strided=True),
        Argument("weight", "input", ("cols",), per_call=False),
        Argument("out", "output", ("rows", "cols")),
    ),
    attributes=(Attribute("eps", "float", (1e-6, 1e-5, 1e-2), 1e-6),),
    workloads={
        "llm": Workload(
            name="llm",
            title="Hidden states of LLM layers",
            shapes={
                Backend.NUMBA: (
                    ShapePoint("256x4096", {"rows": 256, "cols": 4096}, 0.5, {"eps": 1e-6}),
                    ShapePoint("64x8192", {"rows": 64, "cols": 8192}, 0.3, {"eps": 1e-5}),
                    ShapePoint("512x1024", {"rows": 512, "cols": 1024}, 0.2, {"eps": 1e-6}),
                ),
                Backend.TRITON: (
                    ShapePoint("4096x4096", {"rows": 4096, "cols": 4096}, 0.4, {"eps": 1e-6}),
                    ShapePoint("8192x8192", {"rows": 8192, "cols": 8192}, 0.4, {"eps": 1e-5}),
                    ShapePoint("32x8192", {"rows": 32, "cols": 8192}, 0.2, {"eps": 1e-5}),
                ),
            },
            dtypes={Backend.NUMBA: "float32", Backend.TRITON: "bfloat16"},
            regimes=("normal", "offset", "spike", "wide"),
            note="Prefill chunks and decode batches of models with hidden sizes 4096 and 8192 (Llama 3 8B and 70B), "
            "1024 for small models; the CPU's rows are fewer so that a call takes under 5 ms on one core.",
        )
    },
    cases=CASES,
    interpret_cases=INTERPRET_CASES,
    tolerances={
        "float32": Tolerance(
            "float32",
            factor=4.0,
            ulps=6.0,
            cap=1e-3,  # a serial sum of 40,000 squares was seen to lose 1.3e-4
            reason="Sums of squares have no cancellation, so any float32 order stays within sqrt(cols) roundings; the "
            "square root, the division and two products add a few more.",
        ),
        "bfloat16": Tolerance(
            "bfloat16",
            factor=4.0,
            ulps=2.0,
            cap=1e-2,
            reason="One rounding of the result to bfloat16 (2^-8 relative) and room for one more, as eager PyTorch "
            "does; a bfloat16 accumulator is far outside.",
        ),
        "float16": Tolerance(
            "float16",
            factor=4.0,
            ulps=2.0,
            cap=4e-3,
            reason="One rounding of the result to float16 (2^-11 relative) and room for one more; a float16 "
            "accumulator overflows or is far outside.",
        ),
    },
    tunables=(
        *row_tunables("independent partial sums per row"),
        Tunable("ROWS", (Backend.TRITON,), 1, 16, power_of_two=True, note="rows per program where they fit one block"),
    ),
    buckets=BUCKETS,
    bytes_per_call=_bytes,
    flops_per_call=_flops,
    reduction_length=lambda dims: dims["cols"],
    tile=row_tile,
    wrong_kernels=WRONG_KERNELS,
    implementation="harness.operators.rms_norm.implementation",
    folder=Path(__file__).parent,
    row_factor=True,
    domain=DOMAIN,
    shared_regimes=("special_weights",),
    short_regimes=("equal",),  # a long serial sum of equal squares drifts
)
