"""Top-k as data: the k largest values of each row in falling order, and where they lie."""

from __future__ import annotations

from pathlib import Path

from harness.domain.vocabulary import Backend
from harness.operators.base import (
    Argument,
    Attribute,
    Buckets,
    Dims,
    OperatorSpec,
    ShapePoint,
    Span,
    Tolerance,
    Tunable,
    Workload,
)
from harness.operators.rows import row_tile, row_tunables
from harness.operators.topk.cases import CASES, INTERPRET_CASES, WRONG_KERNELS

INDEX_BYTES = 8
MOST = 256
"""The largest k of the domain."""


def _bytes(dims: Dims, itemsize: int) -> int:
    """Compulsory traffic of one call: x read once, values and indices (8 bytes each) written once."""
    return dims["rows"] * (dims["cols"] * itemsize + dims["k"] * (itemsize + INDEX_BYTES))


def _flops(dims: Dims) -> int:
    """One comparison per value."""
    return dims["rows"] * dims["cols"]


def _point(rows: int, cols: int, weight: float, k: int = 64) -> ShapePoint:
    return ShapePoint(f"{rows}x{cols}", {"rows": rows, "cols": cols, "k": k}, weight, {"k": k})


SPEC = OperatorSpec(
    name="topk",
    version="1",
    title="Top-k",
    formula="values[:, i] = i-th largest of x, indices[:, i] = its column, i < k",
    semantics="Row-wise over the last dimension of x, which may have strided rows; k is at most the number of columns "
    f"and at most {MOST}. Values come in falling order, equal ones by the lower index; zeros of either sign are equal. "
    "NaN counts as larger than everything, as in torch, and is equal to every other NaN. Infinities are values like "
    "others. Indices are int64. Nothing is computed, so that values and indices must be the very ones.",
    arguments=(
        Argument("x", "input", ("rows", "cols"), strided=True),
        Argument("values", "output", ("rows", "k")),
        Argument("indices", "output", ("rows", "k"), dtype="int64"),
    ),
    attributes=(Attribute("k", "int", (1, 8, 64), 64, dim="k"),),
    workloads={
        "llm": Workload(
            name="llm",
            title="Candidates of the next token",
            shapes={
                Backend.NUMBA: (_point(32, 32000, 0.4), _point(16, 50257, 0.3), _point(8, 128256, 0.3)),
                Backend.TRITON: (_point(32, 128256, 0.2), _point(4096, 32000, 0.4), _point(8192, 128256, 0.4)),
            },
            dtypes={Backend.NUMBA: "float32", Backend.TRITON: "bfloat16"},
            regimes=("normal", "spike", "masked"),
            note="64 candidates from vocabularies of Llama 2 (32,000), GPT-2 (50,257) and Llama 3 (128,256), for a "
            "decode batch of 32 and for all positions of a prompt (scoring, distillation); the CPU's rows are fewer so "
            "that a call takes under 5 ms on one core.",
        )
    },
    cases=CASES,
    interpret_cases=INTERPRET_CASES,
    tolerances={
        dtype: Tolerance(
            dtype,
            factor=0.0,
            ulps=0.0,
            cap=0.0,
            reason="Values are chosen, not computed: nothing is rounded, and ties have one right order.",
        )
        for dtype in ("float32", "bfloat16", "float16")
    },
    tunables=(
        *row_tunables("values between two looks at the k-th best"),
        Tunable("STEPS", (Backend.TRITON,), 1, 32, power_of_two=True, note="16-byte loads in flight per thread"),
        Tunable("GROUPS", (Backend.TRITON,), 4, 128, power_of_two=True, note="groups looked through at a time"),
    ),
    buckets=Buckets("cols", (("short", 8192), ("medium", 65536), ("long", None))),
    bytes_per_call=_bytes,
    flops_per_call=_flops,
    reduction_length=lambda dims: dims["cols"],
    tile=row_tile,
    wrong_kernels=WRONG_KERNELS,
    implementation="harness.operators.topk.implementation",
    folder=Path(__file__).parent,
    # Up to the last power of two that a vocabulary needs, and more rows than a grid's second axis can count.
    domain={"cols": Span(1, 131072), "k": Span(1, MOST, within="cols"), "rows": Span(1, 70000)},
)
