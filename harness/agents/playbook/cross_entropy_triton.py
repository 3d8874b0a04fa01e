"""Strategies for cross_entropy on Triton: one read, a maximum per lane, loads in flight, rows split over programs.

Figures named here were measured on an H200 (2026-11-29, bfloat16, flushed): the roof of reading 8192 x 128,256 logits
is 482 us; the second read of the shipped kernel and its single load in flight are what is to be won.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.agents.playbook import edit
from harness.agents.playbook.move import Move
from harness.agents.playbook.values import table_move, value_move
from harness.agents.protocol import AgentContext
from harness.domain.vocabulary import Direction, Tier

NAME = "_cross_entropy"
ARGUMENTS = ("logits", "target", "loss", "logits_stride", "vocab", "ignore_index", "BLOCK")
CHOSEN = """\
    wanted = tl.load(target + row)
    used = wanted != ignore_index
    chosen = tl.load(source + wanted, mask=used, other=0.0).to(tl.float32)
"""
HEAD = """\
    row = tl.program_id(0).to(tl.int64)
    source = logits + row * logits_stride
"""
ONLINE = HEAD + CHOSEN + """\
    lanes = tl.arange(0, BLOCK)
    top = float("-inf")
    sums = tl.zeros([BLOCK], tl.float32)
    for start in range(0, vocab, BLOCK):
        offsets = start + lanes
        values = tl.load(source + offsets, mask=offsets < vocab, other=float("-inf")).to(tl.float32)
        highest = tl.maximum(top, tl.max(values, 0))
        safe = tl.where(highest == float("-inf"), 0.0, highest)
        sums = sums * tl.exp(top - safe) + tl.exp(values - safe)
        top = highest
    total = tl.sum(sums, 0)
    tl.store(loss + row, tl.where(used, tl.log(total) + top - chosen, 0.0))
"""
LANES = """\
    steps = tl.arange(0, {steps})[:, None] * BLOCK
    lanes = tl.arange(0, BLOCK)[None, :]
    tops = tl.full([BLOCK], float("-inf"), tl.float32)
    sums = tl.zeros([BLOCK], tl.float32)
    for start in {loop}:
        offsets = start + steps + lanes
        values = tl.load(source + offsets, mask=offsets < {end}, other=float("-inf"){policy}).to(tl.float32)
        highest = tl.maximum(tops, tl.max(values, 0))
        safe = tl.where(highest == float("-inf"), 0.0, highest)
        powers = tl.exp2((values - safe[None, :]) * 1.4426950408889634)
        sums = sums * tl.exp2((tops - safe) * 1.4426950408889634) + tl.sum(powers, 0)
        tops = highest
    top = tl.max(tops, 0)
"""
FINISH = """\
    total = tl.sum(sums * tl.exp2((tops - top) * 1.4426950408889634), 0)
    tl.store(loss + row, tl.where(used, tl.log2(total) * 0.6931471805599453 + top - chosen, 0.0))
"""
PARTIAL = """\
@triton.jit
def _partial_sums(logits, tops_out, sums_out, logits_stride, vocab, span, splits, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    source = logits + row * logits_stride
    last = tl.minimum((part + 1) * span, vocab)
{lanes}    safe_top = tl.where(top == float("-inf"), 0.0, top)
    total = tl.sum(sums * tl.exp2((tops - safe_top) * 1.4426950408889634), 0)
    tl.store(tops_out + row * splits + part, top)
    tl.store(sums_out + row * splits + part, total)
"""
COMBINE = """\
@triton.jit
def _cross_entropy(logits, target, loss, tops, sums, logits_stride, splits, ignore_index, PARTS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    source = logits + row * logits_stride
{chosen}    parts = tl.arange(0, PARTS)
    peaks = tl.load(tops + row * splits + parts, mask=parts < splits, other=float("-inf"))
    shares = tl.load(sums + row * splits + parts, mask=parts < splits, other=0.0)
    top = tl.max(peaks, 0)
    total = tl.sum(shares * tl.exp2((peaks - top) * 1.4426950408889634), 0)
    tl.store(loss + row, tl.where(used, tl.log2(total) * 0.6931471805599453 + top - chosen, 0.0))
"""
SPLIT_RUN = """\
def run(logits, target, loss, *, ignore_index):
    rows, vocab = logits.shape
    block, warps, splits = PARAMS["BLOCK"], PARAMS["num_warps"], PARAMS["SPLITS"]
    bucket = "short" if vocab <= 8192 else "medium" if vocab <= 65536 else "long"
    if isinstance(block, dict):
        block = block[bucket]
    if isinstance(warps, dict):
        warps = warps[bucket]
    if isinstance(splits, dict):
        splits = splits[bucket]
    step = {steps} * block
    span = triton.cdiv(triton.cdiv(vocab, splits), step) * step
    splits = triton.cdiv(vocab, span)
    tops = torch.empty((rows, splits), dtype=torch.float32, device=logits.device)
    sums = torch.empty((rows, splits), dtype=torch.float32, device=logits.device)
    _partial_sums[(rows, splits)](
        logits, tops, sums, logits.stride(0), vocab, span, splits, BLOCK=block, num_warps=warps
    )
    _cross_entropy[(rows,)](
        logits, target, loss, tops, sums, logits.stride(0), splits, ignore_index,
        PARTS=triton.next_power_of_2(splits), num_warps=1
    )
"""
STEPS = 4


def _lanes(steps: int, *, loop: str = "range(0, vocab, {step} * BLOCK)", policy: str = "") -> str:
    body = LANES.format(steps=steps, loop=loop.format(step=steps), end="vocab", policy=policy)
    return HEAD + CHOSEN + body + FINISH


def _fits(source: str) -> bool:
    return edit.argument_names(source, NAME) == ARGUMENTS


def _body(text: str, values: dict[str, int]) -> Callable[[AgentContext], str | None]:
    """Another body with the launch values that it is made for."""
    def transform(context: AgentContext) -> str | None:
        source = context.incumbent.source
        if not _fits(source) or edit.body_text(source, NAME) == text.rstrip("\n"):
            return None
        return edit.set_params(edit.replace_body(source, NAME, text), values)
    return transform


def _refined(text: str, values: dict[str, int]) -> Callable[[AgentContext], str | None]:
    """The same for an incumbent that has a maximum per lane already."""
    def transform(context: AgentContext) -> str | None:
        body = edit.body_text(context.incumbent.source, NAME)
        return _body(text, values)(context) if "steps" in body else None
    return transform


def _split(context: AgentContext) -> str | None:
    source = context.incumbent.source
    if not _fits(source):
        return None
    lanes = LANES.format(steps=STEPS, loop=f"range(part * span, last, {STEPS} * BLOCK)", end="last", policy="")
    changed = edit.replace_function(source, NAME, COMBINE.format(chosen=CHOSEN))
    changed = edit.replace_function(changed, "run", SPLIT_RUN.format(steps=STEPS))
    changed = edit.insert_before(changed, NAME, PARTIAL.format(lanes=lanes))
    changed = edit.set_params(changed, {"BLOCK": 2048, "num_warps": 8, "SPLITS": 4})
    return changed.replace("import triton\n", "import torch\nimport triton\n", 1)


def _plain(source: str) -> bool:
    return _fits(source) and "steps" not in edit.body_text(source, NAME)


def moves(context: AgentContext) -> list[Move]:
    """All strategies; on a machine without a GPU nothing is timed and predictions rest on the cost model alone."""
    pipelined = _lanes(STEPS, loop="tl.range(0, vocab, {step} * BLOCK, num_stages=3)")
    return [
        Move("lane-maxima", Direction.FUSION, NAME, Tier.MEDIUM,
             "Read the logits once: every lane keeps a running maximum and sum of its own, so that no step waits for a "
             f"reduction across the program, and {STEPS} loads of 16 bytes per thread are in flight at once. One "
             "exponential per logit and one more per lane and step; bytes halve.",
             f"running maximum and sum per lane over {STEPS} loads; BLOCK 2048, 8 warps", 0.9, 1.2,
             _body(_lanes(STEPS), {"BLOCK": 2048, "num_warps": 8}), evidence="profile.bytes", basis="bytes"),
        Move("online-maximum", Direction.ALGORITHM, NAME, Tier.MEDIUM,
             "Read the logits once with one running maximum per program: bytes halve, but every step reduces across "
             "all warps before its exponentials can start.",
             "running maximum over blocks; BLOCK 8192, 8 warps", 0.6, 0.6,
             _body(ONLINE, {"BLOCK": 8192, "num_warps": 8}), evidence="profile.bytes", basis="bytes"),
        Move("eight-loads", Direction.PIPELINING, NAME, Tier.MEDIUM,
             "Eight loads of 16 bytes in flight per thread and half as many threads per row: as many bytes are on "
             "their way, more rows are resident and the exponentials per lane are shared by twice as many logits.",
             "eight loads in flight; BLOCK 1024, 4 warps", 0.2, 0.02,
             _refined(_lanes(8), {"BLOCK": 1024, "num_warps": 4}), basis="latency"),
        Move("stream-logits", Direction.LAYOUT, NAME, Tier.MEDIUM,
             "Mark the logits as read once (evict first), so that they do not push out what other programs are about "
             "to read. They are read once anyway, so little is predicted.",
             "logits loaded with evict_first", 0.1, 0.01,
             _refined(_lanes(STEPS, policy=', eviction_policy="evict_first"'), {"BLOCK": 2048, "num_warps": 8})),
        Move("shared-pipeline", Direction.PIPELINING, NAME, Tier.MEDIUM,
             "Let three stages of loads run ahead through shared memory, so that a step finds its logits there. Risk: "
             "registers hold as many bytes in flight already, and shared memory is one more stop on the way.",
             "three-stage pipeline of loads through shared memory", 0.1, 0.01,
             _refined(pipelined, {"BLOCK": 2048, "num_warps": 8})),
        Move("split-vocabulary", Direction.SPLIT_REDUCTION, NAME, Tier.HEAVY,
             "Split each row over four programs with a maximum and a sum each and combine them in a second kernel: 512 "
             "rows then fill the device evenly. Costs a second launch of about 2.5 us and a round trip through memory.",
             "partial maxima and sums over splits, then a combining kernel", 0.3, 0.9, _split,
             evidence="hardware.multiprocessors", basis="occupancy"),
        value_move(context, NAME, "num_warps", 8, what="more loads in flight per program", reach=0.2, most=0.1,
                   direction=Direction.OCCUPANCY, applies=_plain),
        value_move(context, NAME, "BLOCK", 4096, what="fewer loop steps, wider loads", reach=0.2, most=0.2,
                   applies=_plain),
        value_move(context, NAME, "BLOCK", 8192, what="still fewer loop steps", reach=0.2, most=0.1, applies=_plain),
        value_move(context, NAME, "num_warps", 16, what="still more loads in flight. Risk: fewer rows are resident at "
                   "once, and a row's last step leaves more threads idle", reach=0.1, most=0.02,
                   direction=Direction.OCCUPANCY),
        value_move(context, NAME, "BLOCK", 1024, what="narrower programs, more of them resident", reach=0.1, most=0.02),
        table_move(context, NAME, "num_warps", reach=0.1, most=0.03, applies=_fits),
        table_move(context, NAME, "BLOCK", reach=0.1, most=0.03, applies=_plain),
    ]
