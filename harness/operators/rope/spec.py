"""Rotary position embedding as data: the two halves of every head are rotated by the angles of its position."""

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
from harness.operators.rope.cases import CASES, INTERPRET_CASES, WRONG_KERNELS, sizes


def _point(weight: float, batch: int, seq: int, q_heads: int, kv_heads: int, dim: int) -> ShapePoint:
    label = f"B{batch} S{seq} H{q_heads}/{kv_heads} D{dim}"
    return ShapePoint(label, sizes(batch, seq, q_heads, kv_heads, dim // 2), weight)


def _heads(dims: Dims) -> int:
    """Heads of q and k at all positions: each is rotated on its own."""
    return dims["batch"] * dims["seq"] * (dims["q_heads"] + dims["kv_heads"])


def _bytes(dims: Dims, itemsize: int) -> int:
    """Compulsory traffic of one call: q and k read and written once, cos and sin read once."""
    return (2 * _heads(dims) * dims["dim"] + 2 * dims["seq"] * dims["half"]) * itemsize


def _flops(dims: Dims) -> int:
    """Two multiplications and an addition for every element of q and k."""
    return 3 * _heads(dims) * dims["dim"]


def _tile(params: Mapping[str, object], dims: Dims, itemsize: int) -> TileDemand:
    """A program keeps both halves of BLOCK heads as they were loaded, and the angles of each in float32."""
    block, warps = int(params.get("BLOCK", 8)), int(params.get("num_warps", 4))  # type: ignore[call-overload]
    width = 1 << (dims["half"] - 1).bit_length()
    per_thread = -(-block * width // (32 * warps))
    registers = -(-2 * per_thread * itemsize // 4)
    return TileDemand(
        shared_bytes=0,
        registers_per_thread=registers + 24,
        text=f"two halves of {block} heads of width {width} at {itemsize} bytes over {32 * warps} threads are "
        f"{registers} registers a thread, plus at least 24 for angles, addresses and masks; no element needs one of "
        "another thread: 0 bytes of shared memory",
    )


SPEC = OperatorSpec(
    name="rope",
    version="1",
    title="Rotary position embedding",
    formula="(x1, x2) -> (x1 cos - x2 sin, x2 cos + x1 sin) for the two halves of every head of q and k",
    semantics="x1 is the first half of a head, x2 the second (halves, not interleaved pairs); cos and sin have one row "
    "per position and one column per pair, and hold any numbers. Products and their sum in float32, rounded once to "
    "the inputs' dtype. The numbers of heads of q and k are independent of each other. A NaN makes both elements of "
    "its pair NaN and no other, one in cos or sin those of its column at its position. +inf is outside the domain. "
    "Zeros of either sign are equal.",
    arguments=(
        Argument("q", "input", ("batch", "seq", "q_heads", "dim")),
        Argument("k", "input", ("batch", "seq", "kv_heads", "dim")),
        Argument("cos", "input", ("seq", "half"), per_call=False),
        Argument("sin", "input", ("seq", "half"), per_call=False),
        Argument("q_out", "output", ("batch", "seq", "q_heads", "dim")),
        Argument("k_out", "output", ("batch", "seq", "kv_heads", "dim")),
    ),
    attributes=(),
    workloads={
        "llm": Workload(
            name="llm",
            title="Queries and keys of attention layers",
            shapes={
                Backend.NUMBA: (
                    _point(0.5, 1, 128, 32, 8, 128),
                    _point(0.3, 64, 1, 32, 8, 128),
                    _point(0.2, 2, 256, 8, 8, 64),
                ),
                Backend.TRITON: (
                    _point(0.5, 4, 4096, 32, 8, 128),
                    _point(0.3, 1, 8192, 64, 8, 128),
                    _point(0.2, 32, 1, 32, 8, 128),
                ),
            },
            dtypes={Backend.NUMBA: "float32", Backend.TRITON: "bfloat16"},
            regimes=("normal", "offset", "spike", "wide"),
            note="Heads of Llama 3 8B (32 over 8) and 70B (64 over 8): prefill of four prompts and of a long one, and "
            "a decode batch; the CPU's problems are cut down so that a call takes under 5 ms on one core.",
        )
    },
    cases=CASES,
    interpret_cases=INTERPRET_CASES,
    tolerances={
        "float32": Tolerance(
            "float32",
            factor=4.0,
            ulps=4.0,
            cap=1e-5,
            reason="Two products and their sum: three roundings relative to |x1 cos| + |x2 sin|, fewer where they are "
            "fused.",
        ),
        "bfloat16": Tolerance(
            "bfloat16",
            factor=4.0,
            ulps=2.0,
            cap=1e-2,
            reason="One rounding of the result to bfloat16 (2^-8 relative) and room for one more, relative to "
            "|x1 cos| + |x2 sin|; exact problems refuse products that are rounded before they are added.",
        ),
        "float16": Tolerance(
            "float16",
            factor=4.0,
            ulps=2.0,
            cap=4e-3,
            reason="One rounding of the result to float16 (2^-11 relative) and room for one more, relative to "
            "|x1 cos| + |x2 sin|; subnormal results to one step.",
        ),
    },
    tunables=(
        Tunable("BLOCK", (Backend.TRITON,), 1, 256, power_of_two=True, note="heads per program"),
        Tunable("num_warps", (Backend.TRITON,), 1, 16, power_of_two=True, note="warps per program"),
        Tunable("num_stages", (Backend.TRITON,), 1, 8, note="software pipelining depth"),
        Tunable("BLOCK", (Backend.NUMBA,), 1, 256, power_of_two=True, note="heads that share a pass over the angles"),
    ),
    buckets=Buckets("seq", (("decode", 16), ("chunk", 4096), ("long", None))),
    bytes_per_call=_bytes,
    flops_per_call=_flops,
    reduction_length=lambda dims: 2,
    tile=_tile,
    wrong_kernels=WRONG_KERNELS,
    implementation="harness.operators.rope.implementation",
    folder=Path(__file__).parent,
    elementwise_local=True,
    # Heads up to a width of 512, more positions than most contexts, more sequences than a grid's second axis can count.
    domain={
        "half": Span(1, 256), "seq": Span(1, 131072), "q_heads": Span(1, 128), "kv_heads": Span(1, 128),
        "batch": Span(1, 70000), "dim": Span(2, 2, times="half"),
    },
    shared_regimes=("free_angles", "special_angles"),
)
