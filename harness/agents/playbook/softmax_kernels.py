"""The forms that the ladder gives softmax's Triton kernel, as texts of bodies; a source is recognised by them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Literal

from harness.agents.playbook import edit
from harness.agents.playbook.row_runs import Launches, Path, Texts, run_text

NAME = "_softmax"
ARGUMENTS = ("x", "out", "x_stride", "out_stride", "cols", "BLOCK")
STORED = ", eviction_policy=STAY"
STAY = """\
    STAY: tl.constexpr = "evict_last" if BLOCK > 4096 else ""
"""

HEAD = """\
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
"""
THREE_READS = """\
    tops = tl.full([BLOCK], float("-inf"), tl.float32)
    for start in range(0, cols, BLOCK):
        offsets = start + lanes
        values = tl.load(x + row * x_stride + offsets, mask=offsets < cols, other=float("-inf")).to(tl.float32)
        tops = tl.maximum(tops, values)
    top = tl.max(tops, 0)
    sums = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        offsets = start + lanes
        values = tl.load(x + row * x_stride + offsets, mask=offsets < cols, other=float("-inf")).to(tl.float32)
        sums += tl.exp(values - top)
    total = tl.sum(sums, 0)
"""
ONLINE = """\
    top = float("-inf")
    sums = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        offsets = start + lanes
        values = tl.load(x + row * x_stride + offsets, mask=offsets < cols, other=float("-inf")).to(tl.float32)
        highest = tl.maximum(top, tl.max(values, 0))
        safe = tl.where(highest == float("-inf"), 0.0, highest)
        sums = sums * tl.exp(top - safe) + tl.exp(values - safe)
        top = highest
    total = tl.sum(sums, 0)
"""
LAST = """\
    for start in range(0, cols, BLOCK):
        offsets = start + lanes
        mask = offsets < cols
        values = tl.load(x + row * x_stride + offsets, mask=mask, other=float("-inf")).to(tl.float32)
        tl.store(out + row * out_stride + offsets, tl.exp(values - top) / total, mask=mask)
"""
KEPT = """\
    {word} cols {holds} BLOCK:
{within}\
        kept = tl.load(x + row * x_stride + lanes{mask}).to(tl.float32)
        shares = tl.exp(kept - tl.max(kept, 0))
        tl.store(out + row * out_stride + lanes, {share}{store})
"""
WITHIN = "        within = lanes < cols\n"
DIVIDED, MULTIPLIED = "shares / tl.sum(shares, 0)", "shares * (1.0 / tl.sum(shares, 0))"
Loops = Literal["three reads", "online"]


@dataclass(frozen=True, slots=True)
class Form:
    """``loops``: how rows longer than a block are read; ``kept``: one that fits stays in registers; ``once``: a single
    division per row; ``stays``: results of rows of more than 4096 columns are asked to stay in the second-level cache,
    and longer rows are read in blocks of 2048; ``whole``: a row that fills the block needs no masks."""

    loops: Loops = "three reads"
    kept: bool = False
    once: bool = False
    stays: bool = False
    whole: bool = False


def body(form: Form) -> str:
    """The kernel's body; ``once``, ``stays`` and ``whole`` are forms of ``kept``."""
    loops = (ONLINE if form.loops == "online" else THREE_READS) + LAST
    if not form.kept:
        return HEAD + loops
    whole = _kept(form, "if", masked=False) if form.whole else ""
    fast = whole + _kept(form, "elif" if form.whole else "if", masked=True)
    # A row that BLOCK holds never meets the loops, whose accumulators would take registers from it were they as wide.
    loops = narrow(loops) if form.stays else loops
    return (HEAD + (STAY if form.stays else "") + fast + "    else:\n"
            + "".join(f"    {line}\n" for line in loops.splitlines()))


def narrow(loops: str) -> str:
    """Loops over BLOCK columns as loops over 2048."""
    return "    steps = tl.arange(0, 2048)\n" + loops.replace("BLOCK", "2048").replace("start + lanes", "start + steps")


def _kept(form: Form, word: str, *, masked: bool) -> str:
    return KEPT.format(word=word, holds="<=" if masked else "==", within=WITHIN if masked else "",
                       mask=', mask=within, other=float("-inf")' if masked else "",
                       share=MULTIPLIED if form.once else DIVIDED,
                       store=(", mask=within" if masked else "") + (STORED if form.stays else ""))


def _forms() -> list[Form]:
    loops: tuple[Loops, ...] = ("three reads", "online")
    kept = [(False, False, False, False), *((True, *rest) for rest in itertools.product((False, True), repeat=3))]
    return [Form(how, *rest) for how in loops for rest in kept]


FORMS = {body(form).rstrip("\n"): form for form in _forms()}


def form_of(source: str) -> Form | None:
    """The form of a source's kernel, ``None`` where it is another one."""
    if edit.argument_names(source, NAME) != ARGUMENTS:
        return None
    return FORMS.get(edit.body_text(source, NAME))


PARTIAL = """\
@triton.jit
def _partial_softmax(x, tops, sums, x_stride, cols, span, BLOCK: tl.constexpr, PARTS: tl.constexpr):
    part = tl.program_id(0)
    row = tl.program_id(1).to(tl.int64)
    offsets = part * span + tl.arange(0, BLOCK)
    mask = offsets < tl.minimum(part * span + span, cols)
    kept = tl.load(x + row * x_stride + offsets, mask=mask, other=float("-inf"), eviction_policy="evict_last")
    values = kept.to(tl.float32)
    top = tl.max(values, 0)
    safe = tl.where(top == float("-inf"), 0.0, top)
    tl.store(tops + row * PARTS + part, top)
    tl.store(sums + row * PARTS + part, tl.sum(tl.exp(values - safe), 0))
"""
COMBINE = """\
@triton.jit
def _combine_softmax(x, out, tops, sums, x_stride, out_stride, cols, span, BLOCK: tl.constexpr, PARTS: tl.constexpr):
    part = tl.program_id(0)
    row = tl.program_id(1).to(tl.int64)
    offsets = part * span + tl.arange(0, BLOCK)
    mask = offsets < tl.minimum(part * span + span, cols)
    values = tl.load(x + row * x_stride + offsets, mask=mask, other=float("-inf")).to(tl.float32)
    parts = row * PARTS + tl.arange(0, PARTS)
    peaks = tl.load(tops + parts)
    shares = tl.load(sums + parts)
    top = tl.max(peaks, 0)
    total = tl.sum(tl.where(peaks == float("-inf"), shares, shares * tl.exp(peaks - top)), 0)
    tl.store(out + row * out_stride + offsets, tl.exp(values - top) * (1.0 / total), mask=mask)
"""
RUN_HEAD = """\
def run(x, out):
    rows, cols = x.shape
    block, warps = PARAMS["BLOCK"], PARAMS["num_warps"]
    bucket = "short" if cols <= 1024 else "medium" if cols <= 4096 else "long" if cols <= 16384 else "vocabulary"
    if isinstance(block, dict):
        block = block[bucket]
    if isinstance(warps, dict):
        warps = warps[bucket]
"""
OWN = """\
@triton.jit
def _softmax_row(x, out, x_stride, out_stride, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    STAY: tl.constexpr = "evict_last" if BLOCK > 4096 else ""
    kept = tl.load(x + row * x_stride + lanes, mask=lanes < cols, other=float("-inf")).to(tl.float32)
    shares = tl.exp(kept - tl.max(kept, 0))
    scaled = shares * (1.0 / tl.sum(shares, 0))
    tl.store(out + row * out_stride + lanes, scaled, mask=lanes < cols, eviction_policy=STAY)
"""
TEXTS = Texts(
    head=RUN_HEAD,
    loops="_softmax[(rows,)](x, out, x.stride(0), out.stride(0), cols, BLOCK=block, num_warps=warps)",
    own="""\
_softmax_row[(rows,)](
    x, out, x.stride(0), out.stride(0), cols, BLOCK=block, num_warps=warps
)""",
    split="""\
splits = max(1, parts)
span = triton.cdiv(triton.cdiv(cols, splits), 16) * 16
width = triton.next_power_of_2(span)
tops = torch.empty((rows, splits), dtype=torch.float32, device=x.device)
sums = torch.empty((rows, splits), dtype=torch.float32, device=x.device)
_partial_softmax[(splits, rows)](
    x, tops, sums, x.stride(0), cols, span, BLOCK=width, PARTS=splits, num_warps=warps
)
_combine_softmax[(splits, rows)](
    x, out, tops, sums, x.stride(0), out.stride(0), cols, span, BLOCK=width, PARTS=splits, num_warps=warps
)""",
    parts="""\
    parts = PARAMS["PARTS"]
    if isinstance(parts, dict):
        parts = parts[bucket]
""")
PATHS: tuple[Path, ...] = ("loops", "own")
RUNS = {run_text(one, TEXTS).rstrip("\n"): one
        for one in (Launches(path, split) for path in PATHS for split in (False, True))}


def launches_of(source: str) -> Launches | None:
    """What ``run`` of a source launches, ``None`` where it is another one."""
    return RUNS.get(edit.function_text(source, "run"))
