"""Addition and RMSNorm as data: s = x + residual, y = s / sqrt(mean(s^2) + eps) * weight, row by row; s is kept."""

from __future__ import annotations

from pathlib import Path

from harness.domain.vocabulary import Backend
from harness.operators.add_rms_norm.cases import CASES, INTERPRET_CASES, WRONG_KERNELS
from harness.operators.base import Argument, Attribute, Dims, OperatorSpec, Tolerance, Workload
from harness.operators.rows import BUCKETS, DOMAIN, hidden_states, row_tile, row_tunables


def _bytes(dims: Dims, itemsize: int) -> int:
    """Compulsory traffic of one call: x, residual and weight read, out and residual_out written once."""
    return (4 * dims["rows"] * dims["cols"] + dims["cols"]) * itemsize


def _flops(dims: Dims) -> int:
    """Addition, square and its sum, then two multiplications per element."""
    return 5 * dims["rows"] * dims["cols"]


TOLERANCES = {
    "float32": Tolerance(
        "float32",
        factor=4.0,
        ulps=6.0,
        cap=1e-3,  # room for serial sums of 100,000 squares, as in rms_norm
        reason="The sum is rounded once; sums of squares have no cancellation, so any float32 order stays within "
        "sqrt(cols) roundings; the root, the division and two products add a few more.",
    ),
    "bfloat16": Tolerance(
        "bfloat16",
        factor=4.0,
        ulps=2.0,
        cap=1e-2,
        reason="One rounding of the result to bfloat16 (2^-8 relative) and room for one more, around the norm of the "
        "sum or of the rounded sum, both of which are right; a bfloat16 accumulator is far outside.",
    ),
    "float16": Tolerance(
        "float16",
        factor=4.0,
        ulps=2.0,
        cap=4e-3,
        reason="One rounding of the result to float16 (2^-11 relative) and room for one more, around the norm of the "
        "sum or of the rounded sum; a float16 accumulator overflows or is far outside.",
    ),
}

SPEC = OperatorSpec(
    name="add_rms_norm",
    version="1",
    title="Add and RMSNorm",
    formula="residual_out = x + residual; out = residual_out * rsqrt(mean(residual_out^2) + eps) * weight",
    semantics="Row-wise over the last dimension. residual_out is x + residual rounded once to x's dtype; out is "
    "rounded once and may come from the rounded sum or from the unrounded one. Sums accumulate in float32. A NaN in x "
    "or residual makes its row of out NaN and no other, and its own place of residual_out. A NaN or an infinity in "
    "weight makes its column of out so. +inf in x or residual, and sums beyond the dtype's range, are outside the "
    "domain. Zeros of either sign are equal.",
    arguments=(
        Argument("x", "input", ("rows", "cols")),
        Argument("residual", "input", ("rows", "cols")),
        Argument("weight", "input", ("cols",), per_call=False),
        Argument("out", "output", ("rows", "cols")),
        Argument("residual_out", "output", ("rows", "cols")),
    ),
    attributes=(Attribute("eps", "float", (1e-6, 1e-5, 1e-2), 1e-6),),
    workloads={
        "llm": Workload(
            name="llm",
            title="Residual streams of LLM layers",
            shapes=hidden_states(1e-6, 1e-5),
            dtypes={Backend.NUMBA: "float32", Backend.TRITON: "bfloat16"},
            regimes=("normal", "offset", "spike", "wide"),
            note="The residual addition and the norm before attention or MLP of models with hidden sizes 4096 and 8192 "
            "(Llama 3 8B and 70B), for prefill chunks and a decode batch of 32; 1024 for small models. The CPU's rows "
            "are fewer so that a call takes under 5 ms on one core.",
        )
    },
    cases=CASES,
    interpret_cases=INTERPRET_CASES,
    tolerances=TOLERANCES,
    tunables=row_tunables("independent partial sums per row"),
    buckets=BUCKETS,
    bytes_per_call=_bytes,
    flops_per_call=_flops,
    reduction_length=lambda dims: dims["cols"],
    tile=row_tile,
    wrong_kernels=WRONG_KERNELS,
    implementation="harness.operators.add_rms_norm.implementation",
    folder=Path(__file__).parent,
    row_factor=True,
    domain=DOMAIN,
    shared_regimes=("special_weights",),
    short_regimes=("equal",),  # a long serial sum of equal squares drifts
)
