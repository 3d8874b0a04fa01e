"""The forms that the ladder gives rms_norm's Triton kernel, as texts of bodies; a source is recognised by them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import get_args

from harness.agents.playbook import edit
from harness.agents.playbook.row_runs import Launches, Path, Texts, run_text

NAME = "_rms_norm"
ARGUMENTS = ("x", "weight", "out", "x_stride", "out_stride", "cols", "eps", "BLOCK")
STORED = ", eviction_policy=STAY"
STAY = """\
    STAY: tl.constexpr = "evict_last" if BLOCK > 4096 else ""
"""

HEAD = """\
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
"""
LOOPS = """\
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        offsets = start + lanes
        values = tl.load(x + row * x_stride + offsets, mask=offsets < cols, other=0.0).to(tl.float32)
        squares += values * values
    scale = 1.0 / tl.sqrt(tl.sum(squares, 0) / cols + eps)
    for start in range(0, cols, BLOCK):
        offsets = start + lanes
        mask = offsets < cols
        values = tl.load(x + row * x_stride + offsets, mask=mask, other=0.0).to(tl.float32)
        gains = tl.load(weight + offsets, mask=mask, other=0.0).to(tl.float32)
        tl.store(out + row * out_stride + offsets, values * scale * gains, mask=mask)
"""
# A row that BLOCK holds never meets these loops, whose accumulators would take registers from it were they as wide.
TWICE = """\
    steps = tl.arange(0, 2048)
    squares = tl.zeros([2048], tl.float32)
    for start in range(0, cols, 2048):
        offsets = start + steps
        values = tl.load(x + row * x_stride + offsets, mask=offsets < cols, other=0.0, eviction_policy="evict_last")
        squares += values.to(tl.float32) * values.to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(squares, 0) / cols + eps)
    for start in range(0, cols, 2048):
        offsets = start + steps
        mask = offsets < cols
        values = tl.load(x + row * x_stride + offsets, mask=mask, other=0.0, eviction_policy="evict_first")
        gains = tl.load(weight + offsets, mask=mask, other=0.0, eviction_policy="evict_last")
        tl.store(out + row * out_stride + offsets, values.to(tl.float32) * scale * gains.to(tl.float32), mask=mask)
"""
GAINS = """\
        gains = tl.load(weight + lanes{mask})
"""
KEPT = """\
    {word} cols {holds} BLOCK:
{within}\
        kept = tl.load(x + row * x_stride + lanes{mask}).to(tl.float32)
{early}\
        scale = 1.0 / tl.sqrt(tl.sum(kept * kept, 0) / cols + eps)
{late}\
        tl.store(out + row * out_stride + lanes, kept * scale * gains.to(tl.float32){store})
"""
WITHIN = "        mask = lanes < cols\n"


@dataclass(frozen=True, slots=True)
class Form:
    """``kept``: a row that fits one block stays in registers between the sum and the scaling; ``early``: the weight is
    on its way while the row is summed up; ``stays``: results of long rows are asked to stay in the second-level cache
    and longer rows are read twice in blocks of 2048; ``whole``: a row that fills the block needs no masks."""

    kept: bool = False
    early: bool = False
    stays: bool = False
    whole: bool = False


def body(form: Form) -> str:
    """The kernel's body; all else are forms of ``kept``."""
    if not form.kept:
        return HEAD + LOOPS
    whole = _kept(form, "if", masked=False) if form.whole else ""
    fast = whole + _kept(form, "elif" if form.whole else "if", masked=True)
    loops = TWICE if form.stays else LOOPS
    return (HEAD + (STAY if form.stays else "") + fast + "    else:\n"
            + "".join(f"    {line}\n" for line in loops.splitlines()))


def _kept(form: Form, word: str, *, masked: bool) -> str:
    mask = ", mask=mask, other=0.0" if masked else ""
    gains = GAINS.format(mask=mask)
    return KEPT.format(word=word, holds="<=" if masked else "==", within=WITHIN if masked else "", mask=mask,
                       early=gains if form.early else "", late="" if form.early else gains,
                       store=(", mask=mask" if masked else "") + (STORED if form.stays else ""))


FORMS = {body(form).rstrip("\n"): form for form in
         (Form(), *(Form(True, *rest) for rest in itertools.product((False, True), repeat=3)))}


def form_of(source: str) -> Form | None:
    """The form of a source's kernel, ``None`` where it is another one."""
    if edit.argument_names(source, NAME) != ARGUMENTS:
        return None
    return FORMS.get(edit.body_text(source, NAME))


PARTIAL = """\
@triton.jit
def _partial_squares(x, partial, x_stride, cols, splits, span, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    lanes = tl.arange(0, BLOCK)
    first = part * span
    last = tl.minimum(first + span, cols)
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(first, last, BLOCK):
        offsets = start + lanes
        values = tl.load(x + row * x_stride + offsets, mask=offsets < last, other=0.0).to(tl.float32)
        squares += values * values
    tl.store(partial + row * splits + part, tl.sum(squares, 0))
"""
SPLIT = """\
@triton.jit
def _rms_norm(
    x, weight, out, partial, x_stride, out_stride, cols, splits, eps, BLOCK: tl.constexpr, PARTS: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    parts = tl.arange(0, PARTS)
    squares = tl.load(partial + row * splits + parts, mask=parts < splits, other=0.0)
    scale = 1.0 / tl.sqrt(tl.sum(squares, 0) / cols + eps)
    offsets = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < cols
    values = tl.load(x + row * x_stride + offsets, mask=mask, other=0.0).to(tl.float32)
    gains = tl.load(weight + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.store(out + row * out_stride + offsets, values * scale * gains, mask=mask)
"""
RUN_HEAD = """\
def run(x, weight, out, *, eps):
    rows, cols = x.shape
    block, warps = PARAMS["BLOCK"], PARAMS["num_warps"]
    bucket = "short" if cols <= 1024 else "medium" if cols <= 4096 else "long"
    if isinstance(block, dict):
        block = block[bucket]
    if isinstance(warps, dict):
        warps = warps[bucket]
"""
SPLIT_RUN = RUN_HEAD + """\
    splits = min(8, triton.cdiv(cols, block))
    span = triton.cdiv(triton.cdiv(cols, splits), block) * block
    partial = torch.empty((rows, splits), dtype=torch.float32, device=x.device)
    _partial_squares[(rows, splits)](x, partial, x.stride(0), cols, splits, span, BLOCK=block, num_warps=warps)
    _rms_norm[(rows, triton.cdiv(cols, block))](
        x,
        weight,
        out,
        partial,
        x.stride(0),
        out.stride(0),
        cols,
        splits,
        eps,
        BLOCK=block,
        PARTS=8,
        num_warps=warps,
    )
"""
OWN = """\
@triton.jit
def _rms_norm_row(x, weight, out, x_stride, out_stride, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    STAY: tl.constexpr = "evict_last" if BLOCK > 4096 else ""
    mask = lanes < cols
    gains = tl.load(weight + lanes, mask=mask, other=0.0)
    kept = tl.load(x + row * x_stride + lanes, mask=mask, other=0.0).to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(kept * kept, 0) / cols + eps)
    tl.store(out + row * out_stride + lanes, kept * scale * gains.to(tl.float32), mask=mask, eviction_policy=STAY)
"""
TOGETHER = """\
@triton.jit
def _rms_norm_rows(x, weight, out, x_stride, out_stride, rows, cols, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    lanes = tl.arange(0, BLOCK)[None, :]
    mask = (row < rows) & (lanes < cols)
    gains = tl.load(weight + lanes, mask=lanes < cols, other=0.0)
    kept = tl.load(x + row * x_stride + lanes, mask=mask, other=0.0).to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(kept * kept, 1) / cols + eps)
    tl.store(out + row * out_stride + lanes, kept * scale[:, None] * gains.to(tl.float32), mask=mask)
"""
TEXTS = Texts(
    head=RUN_HEAD,
    loops="_rms_norm[(rows,)](x, weight, out, x.stride(0), out.stride(0), cols, eps, BLOCK=block, num_warps=warps)",
    own="""\
_rms_norm_row[(rows,)](
    x,
    weight,
    out,
    x.stride(0),
    out.stride(0),
    cols,
    eps,
    BLOCK=block,
    num_warps=warps,
    maxnreg=64 if block > 4096 else None,
)""",
    together="""\
_rms_norm_rows[(triton.cdiv(rows, count),)](
    x, weight, out, x.stride(0), out.stride(0), rows, cols, eps, ROWS=count, BLOCK=block, num_warps=warps
)""")
RUNS = {run_text(Launches(path), TEXTS).rstrip("\n"): Launches(path) for path in get_args(Path)}


def launches_of(source: str) -> Launches | None:
    """What ``run`` of a source launches, ``None`` where it is another one."""
    return RUNS.get(edit.function_text(source, "run"))
