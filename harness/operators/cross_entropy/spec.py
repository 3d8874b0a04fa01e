"""Cross entropy as data: the logarithm of the sum of exponentials of a row's logits less the logit of its target."""

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
from harness.operators.cross_entropy.cases import CASES, INTERPRET_CASES, WRONG_KERNELS
from harness.operators.rows import row_tile, row_tunables

LOSS_BYTES, TARGET_BYTES = 4, 8
DTYPES = ("float32", "bfloat16", "float16")


def _bytes(dims: Dims, itemsize: int) -> int:
    """Compulsory traffic of one call: logits and targets (8 bytes each) read, losses (4 bytes each) written once."""
    return dims["rows"] * (dims["vocab"] * itemsize + TARGET_BYTES + LOSS_BYTES)


def _flops(dims: Dims) -> int:
    """Comparison, subtraction, exponential and addition count one each per logit."""
    return 4 * dims["rows"] * dims["vocab"]


def _point(rows: int, vocab: int, weight: float) -> ShapePoint:
    return ShapePoint(f"{rows}x{vocab}", {"rows": rows, "vocab": vocab}, weight, {"ignore_index": -100})


SPEC = OperatorSpec(
    name="cross_entropy",
    version="1",
    title="Cross entropy",
    formula="loss = log(sum(exp(logits))) - logits[target], 0 where target = ignore_index",
    semantics="Row-wise over the last dimension of logits, which may have strided rows. target holds a class from 0 to "
    "vocab - 1 or ignore_index, which may be any integer, a class included; the loss of an ignored row is 0, whatever "
    "its logits hold. Losses are float32, and logits in half precision are summed in float32. Single -inf logits count "
    "nothing, as a target they make the loss infinite; a row that is all -inf, or that has a NaN, gives NaN. +inf is "
    "outside the domain.",
    arguments=(
        Argument("logits", "input", ("rows", "vocab"), strided=True),
        Argument("target", "input", ("rows",), dtype="int64"),
        Argument("loss", "output", ("rows",), dtype="float32"),
    ),
    attributes=(Attribute("ignore_index", "int", (-100, -1, 0), -100),),
    workloads={
        "llm": Workload(
            name="llm",
            title="Losses of next tokens",
            shapes={
                Backend.NUMBA: (_point(32, 32000, 0.4), _point(16, 50257, 0.3), _point(8, 128256, 0.3)),
                Backend.TRITON: (_point(512, 128256, 0.2), _point(4096, 32000, 0.4), _point(8192, 128256, 0.4)),
            },
            dtypes={Backend.NUMBA: "float32", Backend.TRITON: "bfloat16"},
            regimes=("normal", "offset", "spike", "masked", "masked_run"),
            note="Vocabularies of Llama 2 (32,000), GPT-2 (50,257) and Llama 3 (128,256); one token in eight is "
            "ignored, as prompts and padding are. The CPU's rows are fewer so that a call takes under 5 ms on one "
            "core.",
        )
    },
    cases=CASES,
    interpret_cases=INTERPRET_CASES,
    tolerances={
        dtype: Tolerance(
            dtype,
            factor=4.0,
            ulps=4.0,
            cap=1e-3,  # room for serial sums of 100,000 terms, as in softmax
            reason="The loss is float32 whatever the logits are: a few roundings of the largest logit, of the target's "
            "and of the exponents, and the sum's own error, which the logarithm turns into an absolute one. A sum in "
            "half precision is far outside.",
        )
        for dtype in DTYPES
    },
    tunables=(
        *row_tunables("independent partial results per row"),
        Tunable("STEPS", (Backend.TRITON,), 1, 32, power_of_two=True, note="16-byte loads in flight per thread"),
        Tunable("SPLITS", (Backend.TRITON,), 1, 64, power_of_two=True, note="programs that share a row"),
    ),
    buckets=Buckets("vocab", (("short", 8192), ("medium", 65536), ("long", None))),
    bytes_per_call=_bytes,
    flops_per_call=_flops,
    # The loss is no sum: what the sum of a row loses is an absolute error of its logarithm, which magnitude() counts.
    reduction_length=lambda dims: 1,
    tile=row_tile,
    wrong_kernels=WRONG_KERNELS,
    implementation="harness.operators.cross_entropy.implementation",
    folder=Path(__file__).parent,
    # Up to the last power of two that a vocabulary needs, and more rows than a grid's second axis can count.
    domain={"vocab": Span(1, 131072), "rows": Span(1, 70000)},
)
