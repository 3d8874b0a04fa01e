"""SwiGLU as data: out = gate * sigmoid(gate) * up, element by element."""

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
    TileDemand,
    Tolerance,
    Tunable,
    Workload,
)
from harness.operators.rows import DOMAIN
from harness.operators.swiglu.cases import CASES, INTERPRET_CASES, WRONG_KERNELS


def _point(rows: int, cols: int, weight: float) -> ShapePoint:
    return ShapePoint(f"{rows}x{cols}", {"rows": rows, "cols": cols}, weight)


def _bytes(dims: Dims, itemsize: int) -> int:
    """Compulsory traffic of one call: gate and up read once, out written once."""
    return 3 * dims["rows"] * dims["cols"] * itemsize


def _flops(dims: Dims) -> int:
    """Exponential, addition, division and two multiplications count one each per element."""
    return 5 * dims["rows"] * dims["cols"]


def _tile(params: Mapping[str, object], dims: Dims, itemsize: int) -> TileDemand:
    """A step of BLOCK elements keeps gate and up, as they were loaded, until the product is stored."""
    block, warps = int(params.get("BLOCK", 1024)), int(params.get("num_warps", 4))  # type: ignore[call-overload]
    per_thread = -(-block // (32 * warps))
    registers = -(-2 * per_thread * itemsize // 4)
    return TileDemand(
        shared_bytes=0,
        registers_per_thread=registers + 16,
        text=f"{block} elements of gate and up at {itemsize} bytes over {32 * warps} threads are {registers} registers "
        "a thread, plus at least 16 for addresses and the arithmetic; no element needs another one: 0 bytes of shared "
        "memory",
    )


SPEC = OperatorSpec(
    name="swiglu",
    version="1",
    title="SwiGLU",
    formula="out = gate * sigmoid(gate) * up",
    semantics="Element by element on two arrays of one shape, evaluated from left to right: gate * up alone may "
    "overflow where the result does not, and the sigmoid must not overflow for any gate (at -1e4 it is 0). Float32 "
    "inside; gate * sigmoid(gate) may be rounded to the input dtype before it is multiplied by up, as eager PyTorch "
    "does. A NaN in gate or up makes its own element NaN and no other; -inf in gate gives NaN, as torch does. +inf is "
    "outside the domain. Zeros of either sign are equal.",
    arguments=(
        Argument("gate", "input", ("rows", "cols")),
        Argument("up", "input", ("rows", "cols")),
        Argument("out", "output", ("rows", "cols")),
    ),
    attributes=(),
    workloads={
        "llm": Workload(
            name="llm",
            title="Gated feed-forward layers of LLMs",
            shapes={
                Backend.NUMBA: (_point(128, 4096, 0.5), _point(32, 14336, 0.3), _point(512, 768, 0.2)),
                Backend.TRITON: (_point(8192, 8192, 0.4), _point(4096, 14336, 0.4), _point(32, 14336, 0.2)),
            },
            dtypes={Backend.NUMBA: "float32", Backend.TRITON: "bfloat16"},
            regimes=("normal", "offset", "spike", "wide"),
            note="Prefill chunks and a decode batch of models with a feed-forward width of 14336 (Llama 3 8B) and one "
            "of 8192; the CPU's rows are fewer so that a call takes under 5 ms on one core. The numba "
            "baseline calls an exponential for every element, which no compiler vectorises: several times slower than "
            "eager PyTorch, so it is flagged.",
        )
    },
    cases=CASES,
    interpret_cases=INTERPRET_CASES,
    tolerances={
        "float32": Tolerance(
            "float32",
            factor=4.0,
            ulps=8.0,
            cap=1e-4,
            reason="Nothing is summed. The exponential turns one rounding of gate into |gate| roundings of the "
            "sigmoid where that is small; a polynomial, the division and two products add a few more.",
        ),
        "bfloat16": Tolerance(
            "bfloat16",
            factor=4.0,
            ulps=2.5,
            cap=1e-2,
            reason="One rounding of the result to bfloat16 (2^-8 relative) and one of gate * sigmoid(gate), as eager "
            "PyTorch does; an exponential in bfloat16 is far outside where gate is negative.",
        ),
        "float16": Tolerance(
            "float16",
            factor=4.0,
            ulps=2.5,
            cap=4e-3,
            reason="One rounding of the result to float16 (2^-11 relative) and one of gate * sigmoid(gate) in its "
            "normal range; subnormal results to one step.",
        ),
    },
    tunables=(
        Tunable("BLOCK", (Backend.TRITON,), 256, 32768, power_of_two=True, note="elements per step"),
        Tunable("num_warps", (Backend.TRITON,), 1, 32, power_of_two=True, note="warps per program"),
        Tunable("num_stages", (Backend.TRITON,), 1, 8, note="software pipelining depth"),
        Tunable("BLOCK", (Backend.NUMBA,), 8, 32768, power_of_two=True, note="elements whose sigmoids are kept"),
    ),
    buckets=Buckets("rows", (("decode", 128), ("chunk", 4096), ("prefill", None))),
    bytes_per_call=_bytes,
    flops_per_call=_flops,
    reduction_length=lambda dims: 1,
    tile=_tile,
    wrong_kernels=WRONG_KERNELS,
    implementation="harness.operators.swiglu.implementation",
    folder=Path(__file__).parent,
    elementwise_local=True,
    domain=DOMAIN,
)
