"""The forms that decode attention takes on Triton, as text: every strategy turns one form into another.

A form has exponentials to base e or 2. A kernel for parts of a sequence and one that combines them may stand beside the
kernel for whole sequences; then parts mask every block or the last one alone, and the combining kernel is launched
behind them or early. What is in a source is read from its text.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.agents.playbook import edit

NAME, PART, COMBINE_NAME = "_attend", "_attend_part", "_combine"
OPTIONS = ("BLOCK_N", "BLOCK_G", "BLOCK_D", "UNROLL", "CACHE_HINT")
ARGUMENTS = ("q", "k_cache", "v_cache", "seq_lens", "out", "max_seq", "kv_heads", "group", "dim", "scale")
PART_ARGUMENTS = ("q", "k_cache", "v_cache", "seq_lens", "parts", "sizes", "max_seq", "kv_heads", "group", "dim",
                  "scale", "batch", "splits", "span")


@dataclass(frozen=True, slots=True)
class Form:
    """Which of the forms the kernels have. ``two``: powers of two; ``peeled``: parts take whole blocks without a mask
    over positions, then the rest; ``dependent``: combining programs of one warp and few columns are launched while
    parts are still computed. Whole sequences keep the mask: without it 16 of 4,096 positions took 70.3 instead of 68.7
    us (measured on an H200)."""

    two: bool = False
    peeled: bool = False
    dependent: bool = False


def form_of(source: str) -> Form | None:
    """The form of the kernels in ``source``, ``None`` where they have none of them."""
    if edit.argument_names(source, NAME) != ARGUMENTS + OPTIONS:
        return None
    part_body = edit.body_text(source, PART) if is_split(source) else ""
    return Form("tl.exp2(" in edit.body_text(source, NAME), "whole =" in part_body, TRIGGER in part_body)


def is_split(source: str) -> bool:
    """Whether sequences may be split over programs."""
    return edit.argument_names(source, PART) == PART_ARGUMENTS + OPTIONS


def kernel(form: Form) -> str:
    """The kernel for whole sequences."""
    return _head(NAME, ARGUMENTS) + body(form)


def body(form: Form) -> str:
    """Its body."""
    return WHOLE_PLACE + BEGIN + _masked(form, "0", "length") + WHOLE_END


def part(form: Form) -> str:
    """The kernel for a part of a sequence: a weighted mean of values and the logarithm of its weight."""
    early = TRIGGER if form.dependent else ""
    loop = _peeled(form, "first", "last") if form.peeled else _masked(form, "first", "last")
    return _head(PART, PART_ARGUMENTS) + early + PART_PLACE + BEGIN + loop + \
        PART_END.replace("LOG", "log2" if form.two else "log")


def combine(form: Form) -> str:
    """The kernel that puts the parts of a sequence together; its base is that of ``form``."""
    return (EARLY_COMBINE if form.dependent else COMBINE).replace("POWER", "exp2" if form.two else "exp")


def _head(name: str, arguments: tuple[str, ...]) -> str:
    listed = [f"    {name},\n" for name in arguments] + [f"    {name}: tl.constexpr,\n" for name in OPTIONS]
    return f"@triton.jit\ndef {name}(\n{''.join(listed)}):\n"


def _masked(form: Form, first: str, last: str) -> str:
    """The online softmax over positions from ``first`` to ``last``, every block masked."""
    return f"""\
    for start in tl.range({first}, {last}, BLOCK_N, loop_unroll_factor=UNROLL):
        positions = start + tl.arange(0, BLOCK_N)
        valid = positions < {last}
        rows = (item * max_seq + positions) * kv_heads + source
        cells = rows[:, None] * dim + columns[None, :]
        mask = valid[:, None] & inside[None, :]
        keys = tl.load(k_cache + cells, mask=mask, other=0.0, eviction_policy=CACHE_HINT)
        values = tl.load(v_cache + cells, mask=mask, other=0.0, eviction_policy=CACHE_HINT)
{_step(form, masked=True)}"""


def _peeled(form: Form, first: str, last: str) -> str:
    """The same with whole blocks first, unmasked, then the rest."""
    return f"""\
    lanes = tl.arange(0, BLOCK_N)
    step = kv_heads * dim
    cells = ((item * max_seq + {first}) * kv_heads + source) * dim + lanes[:, None] * step + columns[None, :]
    k_block = k_cache + cells
    v_block = v_cache + cells
    whole = {last} - ({last} - {first}) % BLOCK_N
    for _ in tl.range({first}, whole, BLOCK_N, loop_unroll_factor=UNROLL):
        keys = tl.load(k_block, mask=inside[None, :], other=0.0, eviction_policy=CACHE_HINT)
        values = tl.load(v_block, mask=inside[None, :], other=0.0, eviction_policy=CACHE_HINT)
{_step(form, masked=False)}\
        k_block += BLOCK_N * step
        v_block += BLOCK_N * step
    if whole < {last}:
        valid = lanes < {last} - whole
        mask = valid[:, None] & inside[None, :]
        keys = tl.load(k_block, mask=mask, other=0.0)
        values = tl.load(v_block, mask=mask, other=0.0)
{_step(form, masked=True)}"""


def _step(form: Form, *, masked: bool) -> str:
    """One block of it; ``keys`` and ``values`` are loaded, positions are ``valid`` where ``masked``."""
    power = "exp2" if form.two else "exp"
    factor = "(scale * 1.4426950408889634)" if form.two else "scale"
    hidden = "        scores = tl.where(valid[None, :], scores, float(\"-inf\"))\n" if masked else ""
    return f"""\
        scores = tl.dot(query, tl.trans(keys), input_precision="ieee") * {factor}
{hidden}\
        highest = tl.maximum(top, tl.max(scores, 1))
        shares = tl.{power}(scores - highest[:, None])
        shrink = tl.{power}(top - highest)
        gathered = gathered * shrink[:, None]
        gathered = tl.dot(shares.to(values.dtype), values, gathered, input_precision="ieee")
        total = total * shrink + tl.sum(shares, 1)
        top = highest
"""


TRIGGER = "    tl.extra.cuda.gdc_launch_dependents()\n"
BEGIN = """\
    members = tl.arange(0, BLOCK_G)
    columns = tl.arange(0, BLOCK_D)
    inside = columns < dim
    heads = (item * kv_heads + source) * group + members
    own = (members < group)[:, None] & inside[None, :]
    query = tl.load(q + heads[:, None] * dim + columns[None, :], mask=own, other=0.0)
    top = tl.full([BLOCK_G], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_G], tl.float32)
    gathered = tl.zeros([BLOCK_G, BLOCK_D], tl.float32)
"""
WHOLE_END = """\
    result = tl.where(length > 0, gathered / total[:, None], 0.0)
    tl.store(out + heads[:, None] * dim + columns[None, :], result, mask=own)
"""
PART_END = """\
    slots = heads * splits + number
    tl.store(parts + slots[:, None] * dim + columns[None, :], gathered / total[:, None], mask=own)
    tl.store(sizes + slots, top + tl.LOG(total), mask=members < group)
"""
WHOLE_PLACE = """\
    item = tl.program_id(0).to(tl.int64)
    source = tl.program_id(1)
    length = tl.load(seq_lens + item)
"""
PART_PLACE = """\
    source = tl.program_id(0) % kv_heads
    item = (tl.program_id(0) // kv_heads % batch).to(tl.int64)
    number = tl.program_id(0) // kv_heads // batch
    length = tl.load(seq_lens + item)
    first = number * span
    if first >= length:
        return
    last = tl.minimum(first + span, length)
"""
COMBINE = """\
@triton.jit
def _combine(parts, sizes, seq_lens, out, q_heads, dim, splits, span, PARTS: tl.constexpr, BLOCK_D: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, PARTS)
    columns = tl.arange(0, BLOCK_D)
    inside = columns < dim
    cells = (row * splits + lanes[:, None]) * dim + columns[None, :]
    length = tl.load(seq_lens + row // q_heads)
    gathered = tl.load(parts + cells, mask=(lanes < splits)[:, None] & inside[None, :], other=0.0)
    logs = tl.load(sizes + row * splits + lanes, mask=lanes < splits, other=float("-inf"))
    known = lanes * span < length
    logs = tl.where(known, logs, float("-inf"))
    shares = tl.where(known, tl.POWER(logs - tl.max(logs, 0)), 0.0)
    result = tl.sum(tl.where(known[:, None], gathered, 0.0) * shares[:, None], 0) / tl.sum(shares, 0)
    tl.store(out + row * dim + columns, tl.where(length > 0, result, 0.0), mask=inside)
"""
EARLY_COMBINE = """\
@triton.jit
def _combine(parts, sizes, seq_lens, out, q_heads, dim, splits, span, PARTS: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, PARTS)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = columns < dim
    cells = (row * splits + lanes[:, None]) * dim + columns[None, :]
    length = tl.load(seq_lens + row // q_heads)
    known = lanes * span < length
    tl.extra.cuda.gdc_wait()
    gathered = tl.load(parts + cells, mask=known[:, None] & inside[None, :], other=0.0)
    logs = tl.load(sizes + row * splits + lanes, mask=known, other=float("-inf"))
    shares = tl.where(known, tl.POWER(logs - tl.max(logs, 0)), 0.0)
    result = tl.sum(gathered * shares[:, None], 0) / tl.sum(shares, 0)
    tl.store(out + row * dim + columns, tl.where(length > 0, result, 0.0), mask=inside)
"""
