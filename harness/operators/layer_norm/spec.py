"""Layer normalisation as data: y = (x - mean) / sqrt(variance + eps) * weight + bias, row by row."""

from __future__ import annotations

from pathlib import Path

from harness.domain.vocabulary import Backend
from harness.operators.base import Argument, Attribute, Dims, OperatorSpec, Tolerance, Workload
from harness.operators.layer_norm.cases import CASES, INTERPRET_CASES, WRONG_KERNELS
from harness.operators.rows import BUCKETS, DOMAIN, hidden_states, row_tile, row_tunables


def _bytes(dims: Dims, itemsize: int) -> int:
    """Compulsory traffic of one call: x, weight and bias read, out written once."""
    return (2 * dims["rows"] * dims["cols"] + 2 * dims["cols"]) * itemsize


def _flops(dims: Dims) -> int:
    """The mean's addition, subtraction, square and its sum, two multiplications and an addition per element."""
    return 7 * dims["rows"] * dims["cols"]


TOLERANCES = {
    "float32": Tolerance(
        "float32",
        factor=4.0,
        ulps=6.0,
        cap=1e-3,  # room for serial sums of 100,000 terms, as in rms_norm
        reason="The mean may be off by sqrt(cols) roundings of the row's mean size, in any order of summation; the "
        "variance is a sum without cancellation once the mean is taken away. A mean of squares less a squared mean is "
        "far outside where a row lies far from 0.",
    ),
    "bfloat16": Tolerance(
        "bfloat16",
        factor=4.0,
        ulps=2.0,
        cap=1e-2,
        reason="One rounding of the result to bfloat16 (2^-8 relative) and room for one more, of both terms' sizes; "
        "the mean to float32's precision. A bfloat16 accumulator is far outside.",
    ),
    "float16": Tolerance(
        "float16",
        factor=4.0,
        ulps=2.0,
        cap=4e-3,
        reason="One rounding of the result to float16 (2^-11 relative) and room for one more, of both terms' sizes; "
        "the mean to float32's precision. A float16 accumulator overflows or is far outside.",
    ),
}

SPEC = OperatorSpec(
    name="layer_norm",
    version="1",
    title="LayerNorm",
    formula="out = (x - mean(x)) * rsqrt(mean((x - mean(x))^2) + eps) * weight + bias",
    semantics="Row-wise over the last dimension. x may have strided rows; the variance is the biased one (divided by "
    "the length) and has two-pass accuracy: rows around 1e4 that differ by 1 come out right in float32. The result is "
    "rounded once to x's dtype; sums accumulate in float32. A NaN or -inf in a row makes that row NaN and no other. A "
    "NaN or an infinity in weight or bias makes its column so. +inf in x is outside the domain. Zeros of either sign "
    "are equal.",
    arguments=(
        Argument("x", "input", ("rows", "cols"), strided=True),
        Argument("weight", "input", ("cols",), per_call=False),
        Argument("bias", "input", ("cols",), per_call=False),
        Argument("out", "output", ("rows", "cols")),
    ),
    attributes=(Attribute("eps", "float", (1e-6, 1e-5, 1e-2), 1e-5),),
    workloads={
        "llm": Workload(
            name="llm",
            title="Hidden states of transformer layers",
            shapes=hidden_states(1e-6, 1e-5),
            dtypes={Backend.NUMBA: "float32", Backend.TRITON: "bfloat16"},
            regimes=("normal", "offset", "spike", "wide"),
            note="Prefill chunks and a decode batch of 32 for hidden sizes 4096 and 8192 (GPT-J 6B, OPT 66B is 9216), "
            "1024 for small models (BERT large); the CPU's rows are fewer so that a call takes under 5 ms on one core.",
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
    implementation="harness.operators.layer_norm.implementation",
    folder=Path(__file__).parent,
    domain=DOMAIN,
    shared_regimes=("special_weights",),
    # Squares of many equal deviations make a long serial sum drift, and so do those of few large ones among nothing;
    # a mean far away is off by more than the deviations.
    short_regimes=("one_hot", "denormal", "far_offset", "far_steps", "negative_offset"),
)
