"""Matrix product, bias and GELU as data: out = gelu(a @ b + bias)."""

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
from harness.operators.matmul_bias_gelu.cases import CASES, INTERPRET_CASES, WRONG_KERNELS

GPU = (Backend.TRITON,)


def _point(m: int, k: int, n: int, weight: float) -> ShapePoint:
    return ShapePoint(f"{m}x{k}x{n}", {"m": m, "k": k, "n": n}, weight)


def _bytes(dims: Dims, itemsize: int) -> int:
    """Compulsory traffic of one call: both operands and the bias read, the result written, each once."""
    m, k, n = dims["m"], dims["k"], dims["n"]
    return (m * k + k * n + n + m * n) * itemsize


def _flops(dims: Dims) -> int:
    """A product and a sum per term; the bias and GELU vanish beside them."""
    return 2 * dims["m"] * dims["k"] * dims["n"]


def _tile(params: Mapping[str, object], dims: Dims, itemsize: int) -> TileDemand:
    """One stage of both operands' tiles in shared memory, the accumulator in registers.

    Pipelining keeps at least ``num_stages`` minus one stages of both tiles; without it the operands still pass through
    shared memory one after the other. A float32 accumulator of BLOCK_M x BLOCK_N over the threads is live all along.
    """
    values = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "num_warps": 4, "num_stages": 2, **params}
    rows, columns, terms = (int(values[name]) for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K"))  # type: ignore[call-overload]
    warps, stages = int(values["num_warps"]), int(values["num_stages"])  # type: ignore[call-overload]
    held = max(1, stages - 1) if dims["k"] > terms else 0
    each = (rows * terms + terms * columns) * itemsize
    threads = 32 * warps
    accumulator = -(-rows * columns // threads)
    return TileDemand(
        shared_bytes=held * each,
        registers_per_thread=accumulator + 24,
        text=f"({rows} x {terms} + {terms} x {columns}) x {itemsize} bytes = {each} bytes a stage, of which {stages} "
        f"stages keep at least {held}: {held * each} bytes of shared memory; a float32 accumulator of {rows} x "
        f"{columns} over {threads} threads is {accumulator} registers a thread, plus at least 24 for addresses and "
        "operands",
    )


SPEC = OperatorSpec(
    name="matmul_bias_gelu",
    version="1",
    title="Linear layer with GELU",
    formula="out = gelu(a @ b + bias),  gelu(s) = 0.5 s (1 + tanh(sqrt(2 / pi) (s + 0.044715 s^3)))",
    semantics="a [m, k] and b [k, n] are dense rows, bias [n] is added to every row. Sums, bias and GELU are float32, "
    "the result is rounded once, the sum not at all. GELU is the tanh approximation; the form with erf differs by up "
    "to 5e-4 and is another function. A NaN in a row of a makes that row NaN, one in a column "
    "of b that column, and nothing else. Infinities are outside the domain; a finite sum whose cube overflows is not. "
    "Zeros of either sign are equal.",
    arguments=(
        Argument("a", "input", ("m", "k")),
        Argument("b", "input", ("k", "n")),  # a layer's weight, but another layer's in the next call: never in a cache
        Argument("bias", "input", ("n",), per_call=False),
        Argument("out", "output", ("m", "n")),
    ),
    attributes=(),
    workloads={
        "llm": Workload(
            name="llm",
            title="First linear layer of a feed-forward block",
            shapes={
                Backend.NUMBA: (
                    _point(64, 256, 256, 0.5),
                    _point(8, 512, 1024, 0.3),
                    _point(128, 128, 192, 0.2),
                ),
                Backend.TRITON: (
                    _point(4096, 4096, 4096, 0.5),
                    _point(32, 4096, 14336, 0.3),
                    _point(1024, 1024, 1024, 0.2),
                ),
            },
            dtypes={Backend.NUMBA: "float32", Backend.TRITON: "bfloat16"},
            regimes=("normal", "offset", "spike", "wide"),
            note="A prefill chunk of 4,096 tokens, a decode batch of 32 tokens through a layer of 4,096 by 14,336 (its "
            "weight, 117 MB, is what takes the time) and a small product; the CPU's problems are cut down so that a "
            "call takes under 5 ms on one core. Labels are m x k x n. b changes with every timed call, as the weights "
            "of successive layers do: it comes from memory, not from a cache.",
        )
    },
    cases=CASES,
    interpret_cases=INTERPRET_CASES,
    tolerances={
        "float32": Tolerance(
            "float32",
            factor=4.0,
            ulps=8.0,
            cap=1e-3,
            reason="A float32 sum of k terms in any order errs by up to 2 sqrt(k) roundings of the sum of their sizes, "
            "which GELU's slope multiplies by 1.13; the exponential, the quotient and a product add a few. TF32 "
            "operands are far outside.",
        ),
        "bfloat16": Tolerance(
            "bfloat16",
            factor=4.0,
            ulps=2.0,
            cap=1e-2,
            reason="One rounding of the result to bfloat16 (2^-8 relative) and room for one more; sums are float32. "
            "The part that refers to the terms' sizes is as small as a float32 sum's own error. A sum rounded to "
            "bfloat16 before GELU, as a product followed by GELU has it, is outside where GELU bends.",
        ),
        "float16": Tolerance(
            "float16",
            factor=4.0,
            ulps=2.0,
            cap=4e-3,
            reason="One rounding of the result to float16 (2^-11 relative) and room for one more; sums are float32, a "
            "float16 accumulator is far outside.",
        ),
    },
    tunables=(
        Tunable("BLOCK_M", GPU, 16, 256, power_of_two=True, note="rows of a tile"),
        Tunable("BLOCK_N", GPU, 16, 256, power_of_two=True, note="columns of a tile"),
        Tunable("BLOCK_K", GPU, 16, 256, power_of_two=True, note="terms per loop step"),
        Tunable("GROUP", GPU, 1, 64, note="tile rows that share their column tiles in the L2 cache"),
        Tunable("SPLITS", GPU, 1, 32, power_of_two=True, note="parts that long sums are split into"),
        Tunable("num_warps", GPU, 1, 16, power_of_two=True, note="warps per program"),
        Tunable("num_stages", GPU, 1, 8, note="software pipelining depth"),
        Tunable("ROWS", (Backend.NUMBA,), 1, 64, power_of_two=True, note="rows of a taken together"),
        Tunable("BLOCK", (Backend.NUMBA,), 8, 4096, power_of_two=True, note="columns per block"),
    ),
    buckets=Buckets("m", (("few", 64), ("some", 1024), ("many", None))),
    bytes_per_call=_bytes,
    flops_per_call=_flops,
    reduction_length=lambda dims: dims["k"],
    tile=_tile,
    wrong_kernels=WRONG_KERNELS,
    implementation="harness.operators.matmul_bias_gelu.implementation",
    folder=Path(__file__).parent,
    # Feed-forward layers are up to 53,248 wide (Llama 3 405B); more rows than a grid's second axis can count.
    domain={"k": Span(1, 16384), "n": Span(1, 53248), "m": Span(1, 70000)},
    shared_regimes=("bias_large", "b_wide", "b_nan"),
)
