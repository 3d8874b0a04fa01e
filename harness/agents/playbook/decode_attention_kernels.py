"""The forms that decode attention takes on Triton, as text: every strategy turns one form into another.

A form is whole-cache or split, with exponentials to base e or 2, with every block masked or only the last one, with
queries or keys as the rows of the products. What is in a source is read from its text.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.agents.playbook import edit

NAME, COMBINE_NAME = "_attend", "_combine"
OPTIONS = ("BLOCK_N", "BLOCK_G", "BLOCK_D", "UNROLL", "CACHE_HINT")
WHOLE_ARGUMENTS = ("q", "k_cache", "v_cache", "seq_lens", "out", "max_seq", "kv_heads", "group", "dim", "scale")
SPLIT_ARGUMENTS = ("q", "k_cache", "v_cache", "seq_lens", "parts", "sizes", "max_seq", "kv_heads", "group", "dim",
                   "scale", "batch", "splits", "span")


@dataclass(frozen=True, slots=True)
class Form:
    """Which of the forms a kernel has. ``split``: each program takes a part of a sequence; ``two``: powers of two;
    ``peeled``: whole blocks without a mask over positions, then the rest; ``turned``: keys times queries."""

    split: bool = False
    two: bool = False
    peeled: bool = False
    turned: bool = False


def form_of(source: str) -> Form | None:
    """The form of the kernel in ``source``, ``None`` where it is none of them."""
    arguments, body = edit.argument_names(source, NAME), edit.body_text(source, NAME)
    split = arguments == SPLIT_ARGUMENTS + OPTIONS
    if not split and arguments != WHOLE_ARGUMENTS + OPTIONS:
        return None
    return Form(split, "tl.exp2(" in body, "whole =" in body, "tl.dot(keys" in body)


def kernel(form: Form) -> str:
    """The kernel function of ``form``."""
    names = SPLIT_ARGUMENTS if form.split else WHOLE_ARGUMENTS
    listed = [f"    {name},\n" for name in names] + [f"    {name}: tl.constexpr,\n" for name in OPTIONS]
    return f"@triton.jit\ndef {NAME}(\n{''.join(listed)}):\n{body(form)}"


def body(form: Form) -> str:
    """The body of the kernel function of ``form``."""
    return _begin(form) + _loop(form) + _end(form)


def combine(form: Form) -> str:
    """The kernel that puts the parts of a split sequence together; its base is that of ``form``."""
    return COMBINE.replace("POWER", "exp2" if form.two else "exp")


def _begin(form: Form) -> str:
    place = SPLIT_PLACE if form.split else WHOLE_PLACE
    own, heads, columns = ("inside[:, None] & (members < group)[None, :]", "heads[None, :]", "columns[:, None]") \
        if form.turned else ("(members < group)[:, None] & inside[None, :]", "heads[:, None]", "columns[None, :]")
    shape = "[BLOCK_D, BLOCK_G]" if form.turned else "[BLOCK_G, BLOCK_D]"
    return place + f"""\
    members = tl.arange(0, BLOCK_G)
    columns = tl.arange(0, BLOCK_D)
    inside = columns < dim
    heads = (item * kv_heads + source) * group + members
    own = {own}
    query = tl.load(q + {heads} * dim + {columns}, mask=own, other=0.0)
    top = tl.full([BLOCK_G], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_G], tl.float32)
    gathered = tl.zeros({shape}, tl.float32)
"""


def _loop(form: Form) -> str:
    first, last = ("first", "last") if form.split else ("0", "length")
    if not form.peeled:
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
    """One block of the online softmax; ``keys`` and ``values`` are loaded, positions are ``valid`` where ``masked``."""
    power = "exp2" if form.two else "exp"
    factor = "(scale * 1.4426950408889634)" if form.two else "scale"
    axis, along, across = (0, "[None, :]", "[:, None]") if form.turned else (1, "[:, None]", "[None, :]")
    scores = "keys, query" if form.turned else "query, tl.trans(keys)"
    sums = "tl.trans(values), shares.to(values.dtype)" if form.turned else "shares.to(values.dtype), values"
    hidden = f"        scores = tl.where(valid{across}, scores, float(\"-inf\"))\n" if masked else ""
    return f"""\
        scores = tl.dot({scores}, input_precision="ieee") * {factor}
{hidden}\
        highest = tl.maximum(top, tl.max(scores, {axis}))
        shares = tl.{power}(scores - highest{along})
        shrink = tl.{power}(top - highest)
        gathered = gathered * shrink{along}
        gathered = tl.dot({sums}, gathered, input_precision="ieee")
        total = total * shrink + tl.sum(shares, {axis})
        top = highest
"""


def _end(form: Form) -> str:
    along, heads, columns = ("[None, :]", "[None, :]", "columns[:, None]") if form.turned else (
        "[:, None]", "[:, None]", "columns[None, :]")
    if not form.split:
        return f"""\
    result = tl.where(length > 0, gathered / total{along}, 0.0)
    tl.store(out + heads{heads} * dim + {columns}, result, mask=own)
"""
    log = "log2" if form.two else "log"
    return f"""\
    slots = heads * splits + part
    tl.store(parts + slots{heads} * dim + {columns}, gathered / total{along}, mask=own)
    tl.store(sizes + slots, top + tl.{log}(total), mask=members < group)
"""


WHOLE_PLACE = """\
    item = tl.program_id(0).to(tl.int64)
    source = tl.program_id(1)
    length = tl.load(seq_lens + item)
"""
SPLIT_PLACE = """\
    source = tl.program_id(0) % kv_heads
    item = (tl.program_id(0) // kv_heads % batch).to(tl.int64)
    part = tl.program_id(0) // kv_heads // batch
    length = tl.load(seq_lens + item)
    first = part * span
    if first >= length:
        return
    last = tl.minimum(first + span, length)
"""
COMBINE = """\
@triton.jit
def _combine(parts, sizes, seq_lens, out, q_heads, dim, splits, span, PARTS: tl.constexpr, BLOCK_D: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    used = tl.cdiv(tl.load(seq_lens + row // q_heads), span)
    lanes = tl.arange(0, PARTS)
    columns = tl.arange(0, BLOCK_D)
    inside = columns < dim
    known = lanes < used
    logs = tl.load(sizes + row * splits + lanes, mask=known, other=float("-inf"))
    cells = (row * splits + lanes[:, None]) * dim + columns[None, :]
    gathered = tl.load(parts + cells, mask=known[:, None] & inside[None, :], other=0.0)
    shares = tl.where(known, tl.POWER(logs - tl.max(logs, 0)), 0.0)
    result = tl.sum(gathered * shares[:, None], 0) / tl.sum(shares, 0)
    tl.store(out + row * dim + columns, tl.where(used > 0, result, 0.0), mask=inside)
"""
RUN_HEAD = """\
def run(q, k_cache, v_cache, seq_lens, out, *, scale):
    batch, q_heads, dim = q.shape
    max_seq, kv_heads = k_cache.shape[1], k_cache.shape[2]
    bucket = "short"
    for name, least in (("medium", 513), ("long", 2049), ("longer", 4097), ("huge", 8193), ("giant", 32769)):
        if max_seq >= least:
            bucket = name
    block, unroll, hint = PARAMS["BLOCK_N"], PARAMS["UNROLL"], PARAMS["CACHE_HINT"]
    warps, stages, registers = PARAMS["num_warps"], PARAMS["num_stages"], PARAMS["maxnreg"]
    if isinstance(block, dict):
        block = block[bucket]
    if isinstance(unroll, dict):
        unroll = unroll[bucket]
    if isinstance(hint, dict):
        hint = hint[bucket]
    if isinstance(warps, dict):
        warps = warps[bucket]
    if isinstance(stages, dict):
        stages = stages[bucket]
    if isinstance(registers, dict):
        registers = registers[bucket]
    group = q_heads // kv_heads
"""
RUN_FIXED = """\
    most = PARAMS["SPLITS"]
    if isinstance(most, dict):
        most = most[bucket]
    span = triton.cdiv(triton.cdiv(max_seq, most), block) * block
"""
RUN_CHOSEN = """\
    most, least, programs = PARAMS["SPLITS"], PARAMS["SPAN"], PARAMS["PROGRAMS"]
    if isinstance(most, dict):
        most = most[bucket]
    if isinstance(least, dict):
        least = least[bucket]
    if isinstance(programs, dict):
        programs = programs[bucket]
    programs = torch.cuda.get_device_properties(q.device).multi_processor_count * int(programs)
    wanted = min(most, triton.cdiv(programs, batch * kv_heads))
    span = max(least, triton.cdiv(triton.cdiv(max_seq, wanted), block) * block)
"""
RUN_TAIL = """\
    splits = triton.cdiv(max_seq, span)
    width = max(16, triton.next_power_of_2(dim))
    parts = torch.empty((batch, q_heads, splits, dim), dtype=torch.float32, device=q.device)
    sizes = torch.empty((batch, q_heads, splits), dtype=torch.float32, device=q.device)
    _attend[(batch * kv_heads * splits,)](
        q,
        k_cache,
        v_cache,
        seq_lens,
        parts,
        sizes,
        max_seq,
        kv_heads,
        group,
        dim,
        scale,
        batch,
        splits,
        span,
        BLOCK_N=block,
        BLOCK_G=max(16, triton.next_power_of_2(group)),
        BLOCK_D=width,
        UNROLL=unroll,
        CACHE_HINT=hint,
        num_warps=warps,
        num_stages=stages,
        maxnreg=None if registers == 0 else int(registers),
    )
    _combine[(batch * q_heads,)](
        parts,
        sizes,
        seq_lens,
        out,
        q_heads,
        dim,
        splits,
        span,
        PARTS=triton.next_power_of_2(splits),
        BLOCK_D=width,
        num_warps=4,
    )
"""
