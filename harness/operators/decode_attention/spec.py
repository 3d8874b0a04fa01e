"""Decode attention as data: one query token per sequence against a padded key/value cache, grouped heads."""

from __future__ import annotations

import math
from collections.abc import Mapping
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
    TileDemand,
    Tolerance,
    Tunable,
    Workload,
)
from harness.operators.decode_attention.cases import CASES, INTERPRET_CASES, WRONG_KERNELS


def _point(label: str, weight: float, batch: int, q_heads: int, kv_heads: int, dim: int, max_seq: int,
           ragged: bool = False) -> ShapePoint:
    """``ragged``: lengths from 1 to max_seq, log-uniform, one from each of as many equal parts as there are sequences,
    so that what all of them hold together hardly depends on the draw."""
    dims = {"batch": batch, "q_heads": q_heads, "kv_heads": kv_heads, "dim": dim, "max_seq": max_seq}
    if not ragged:
        return ShapePoint(label, dims, weight, {"scale": dim**-0.5})
    parts = tuple(f"length {part} of {batch}" for part in range(1, batch + 1))
    return ShapePoint(label, dims, weight, {"scale": dim**-0.5}, parts, {"max_seq": round(mean_length(max_seq))})


def mean_length(longest: int) -> float:
    """The mean of lengths drawn log-uniformly from 1 to ``longest``: each length n has the share
    log(1 + 1 / n) / log(longest + 1)."""
    return sum(n * math.log1p(1 / n) for n in range(1, longest + 1)) / math.log(longest + 1)


def _bytes(dims: Dims, itemsize: int) -> int:
    """Traffic of one call with full caches: keys and values once, q, out and the lengths (4 bytes each)."""
    cache = dims["batch"] * dims["max_seq"] * dims["kv_heads"] * dims["dim"]
    heads = dims["batch"] * dims["q_heads"] * dims["dim"]
    return 2 * (cache + heads) * itemsize + 4 * dims["batch"]


def _flops(dims: Dims) -> int:
    """Two products and sums (QK and PV) per query head, position and column, with full caches."""
    return 4 * dims["batch"] * dims["q_heads"] * dims["max_seq"] * dims["dim"]


def _tile(params: Mapping[str, object], dims: Dims, itemsize: int) -> TileDemand:
    """Pipelining keeps all stages but one of both blocks in shared memory; scores and the weighted sum of 16 padded
    query heads are float32 in registers."""
    values = {"BLOCK_N": 64, "num_warps": 4, "num_stages": 2, **params}
    block, warps, stages = (int(values[name]) for name in ("BLOCK_N", "num_warps", "num_stages"))  # type: ignore[call-overload]
    width = max(16, 1 << (dims["dim"] - 1).bit_length())
    heads = max(16, 1 << (dims["q_heads"] // dims["kv_heads"] - 1).bit_length())
    threads, held = 32 * warps, stages - 1 if dims["max_seq"] > block else 0
    shared = held * 2 * block * width * itemsize
    registers = -(-heads * (block + width) // threads)
    return TileDemand(
        shared_bytes=shared,
        registers_per_thread=registers + 32,
        text=f"{block} keys and as many values of width {width} at {itemsize} bytes, {held} of {stages} stages kept: "
        f"{held} x 2 x {block} x {width} x {itemsize} = {shared} bytes of shared memory; scores and sums of {heads} "
        f"heads, {heads} x ({block} + {width}) over {threads} threads, are {registers} registers a thread, plus at "
        "least 32 for the query and addresses",
    )


SPEC = OperatorSpec(
    name="decode_attention",
    version="1",
    title="Decode attention (GQA, padded cache)",
    formula="out[b, h] = softmax(scale * q[b, h] . K[b, :len, g]) V[b, :len, g],  g = h // (q_heads / kv_heads)",
    semantics="seq_lens[b] counts the valid cache positions, 0 <= len <= max_seq; length 0 gives zeros; entries past "
    "the length may hold anything, NaN included, and must not matter. Query head h reads kv head "
    "h // (q_heads / kv_heads). Products accumulate in float32; probabilities may be rounded to the input dtype before "
    "P.V.",
    arguments=(
        Argument("q", "input", ("batch", "q_heads", "dim")),
        Argument("k_cache", "input", ("batch", "max_seq", "kv_heads", "dim")),
        Argument("v_cache", "input", ("batch", "max_seq", "kv_heads", "dim")),
        Argument("seq_lens", "input", ("batch",), dtype="int32", counts="max_seq"),
        Argument("out", "output", ("batch", "q_heads", "dim")),
    ),
    attributes=(Attribute("scale", "float", (0.125, 0.088388347648, 1.0), 0.125),),
    workloads={
        "llm": Workload(
            name="llm",
            title="Token generation with grouped heads",
            shapes={
                Backend.NUMBA: (
                    _point("B4 H8/2 D64 S512", 0.5, 4, 8, 2, 64, 512),
                    _point("B1 H8/2 D128 S1024", 0.3, 1, 8, 2, 128, 1024),
                    _point("B8 H4/4 D64 S256", 0.2, 8, 4, 4, 64, 256),
                ),
                Backend.TRITON: (
                    _point("B1 H32/8 D128 S8192", 0.2, 1, 32, 8, 128, 8192),
                    _point("B1 H32/8 D128 S131072", 0.2, 1, 32, 8, 128, 131072),
                    _point("B16 H32/8 D128 S4096", 0.15, 16, 32, 8, 128, 4096),
                    _point("B64 H32/8 D128 S1024", 0.1, 64, 32, 8, 128, 1024),
                    _point("B64 H32/8 D128 S8192", 0.15, 64, 32, 8, 128, 8192),
                    _point("B32 H32/8 D128 S16384 ragged", 0.2, 32, 32, 8, 128, 16384, ragged=True),
                ),
            },
            dtypes={Backend.NUMBA: "float32", Backend.TRITON: "bfloat16"},
            regimes=("normal", "peaked", "offset"),
            note="Heads of Llama 3 8B (32 over 8) in the cases of a server: one conversation of 8,192 positions, one "
            "of 131,072, batches of 16 and 64, and a batch of 32 whose lengths differ (log-uniform from 1 to 16,384, "
            "1,688 on average); the CPU's problems are cut down so that a call takes under 5 ms on one core. "
            "Lengths are the whole cache or up to three less unless a shape says ragged.",
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
            reason="Error of a score is a few roundings of sum |q k|, which the exponential turns into a relative "
            "error of the probabilities; the weighted sum adds sqrt(max_seq) roundings.",
        ),
        "bfloat16": Tolerance(
            "bfloat16",
            factor=4.0,
            ulps=2.0,
            cap=1e-2,
            reason="One rounding of the result and one of the probabilities before P.V, relative to sum p |v|; R4 "
            "allows attention in half precision 1e-2 at the very most.",
        ),
        "float16": Tolerance(
            "float16",
            factor=4.0,
            ulps=4.0,
            cap=1e-2,
            reason="One rounding of the result and one of the probabilities before P.V (float16 keeps small ones as "
            "subnormals), relative to sum p |v|; R4 allows 1e-2 at the very most.",
        ),
    },
    tunables=(
        Tunable("BLOCK_N", (Backend.TRITON,), 16, 256, power_of_two=True, note="cache positions per loop step"),
        Tunable("UNROLL", (Backend.TRITON,), choices=(1, 2, 4), note="loop steps written out one after the other"),
        Tunable("CACHE_HINT", (Backend.TRITON,), choices=("", "evict_first"),
                note="what the L2 cache is told about keys and values"),
        Tunable("SPAN", (Backend.TRITON,), 64, 8192, power_of_two=True, note="least cache positions of a split"),
        Tunable("SPLITS", (Backend.TRITON,), 1, 256, power_of_two=True, note="parts a sequence is split into at most"),
        Tunable("PROGRAMS", (Backend.TRITON,), 1, 64, note="programs wanted per multiprocessor"),
        Tunable("num_warps", (Backend.TRITON,), 1, 16, power_of_two=True, note="warps per program"),
        Tunable("num_stages", (Backend.TRITON,), 1, 8, note="software pipelining depth"),
        Tunable("maxnreg", (Backend.TRITON,), choices=(0, 96, 128, 192), note="most registers a thread, 0 any number"),
        Tunable("BLOCK", (Backend.NUMBA,), 1, 4096, power_of_two=True, note="cache positions per step"),
    ),
    buckets=Buckets("max_seq", (("short", 512), ("medium", 2048), ("long", 4096), ("longer", 8192), ("huge", 32768),
                                ("giant", None))),
    bytes_per_call=_bytes,
    flops_per_call=_flops,
    reduction_length=lambda dims: max(dims["max_seq"], dims["dim"]),
    tile=_tile,
    wrong_kernels=WRONG_KERNELS,
    implementation="harness.operators.decode_attention.implementation",
    folder=Path(__file__).parent,
    groups="kv_heads",
    domain={
        "max_seq": Span(1, 131072), "kv_heads": Span(1, 32), "q_heads": Span(1, 16, times="kv_heads"),
        "dim": Span(16, 256), "batch": Span(1, 70000),
    },
)
