"""The forms that decode attention takes on Triton, as text: every strategy turns one form into another.

A form has exponentials to base e or 2 and masks every block or the last one alone. A kernel for parts of a sequence and
one that combines them may stand beside the kernel for whole sequences. What is in a source is read from its text.
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
    """Which of the forms the kernels have. ``two``: powers of two; ``peeled``: whole blocks without a mask over
    positions, then the rest; ``dependent``: the combining kernel is launched while parts are still computed."""

    two: bool = False
    peeled: bool = False
    dependent: bool = False


def form_of(source: str) -> Form | None:
    """The form of the kernels in ``source``, ``None`` where they have none of them."""
    if edit.argument_names(source, NAME) != ARGUMENTS + OPTIONS:
        return None
    body = edit.body_text(source, NAME)
    return Form("tl.exp2(" in body, "whole =" in body, is_split(source) and TRIGGER in edit.body_text(source, PART))


def is_split(source: str) -> bool:
    """Whether sequences may be split over programs."""
    return edit.argument_names(source, PART) == PART_ARGUMENTS + OPTIONS


def kernel(form: Form) -> str:
    """The kernel for whole sequences."""
    return _head(NAME, ARGUMENTS) + body(form)


def body(form: Form) -> str:
    """Its body."""
    return WHOLE_PLACE + BEGIN + _loop(form, "0", "length") + WHOLE_END


def part(form: Form) -> str:
    """The kernel for a part of a sequence: a weighted mean of values and the logarithm of its weight."""
    early = TRIGGER if form.dependent else ""
    return _head(PART, PART_ARGUMENTS) + early + PART_PLACE + BEGIN + _loop(form, "first", "last") + \
        PART_END.replace("LOG", "log2" if form.two else "log")


def combine(form: Form) -> str:
    """The kernel that puts the parts of a sequence together; its base is that of ``form``."""
    return COMBINE.replace("POWER", "exp2" if form.two else "exp").replace("WAIT", WAIT if form.dependent else "")


def launched(source: str) -> str:
    """``source`` with the combining kernel launched while parts are still computed."""
    text = edit.function_text(source, "run").replace(COMBINE_LAUNCH, COMBINE_LAUNCH + DEPENDENT)
    return edit.replace_function(source, "run", text)


def _head(name: str, arguments: tuple[str, ...]) -> str:
    listed = [f"    {name},\n" for name in arguments] + [f"    {name}: tl.constexpr,\n" for name in OPTIONS]
    return f"@triton.jit\ndef {name}(\n{''.join(listed)}):\n"


def _loop(form: Form, first: str, last: str) -> str:
    """The online softmax over positions from ``first`` to ``last``."""
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
WAIT = "    tl.extra.cuda.gdc_wait()\n"
COMBINE_LAUNCH = "        PARTS=triton.next_power_of_2(splits),\n        BLOCK_D=width,\n        num_warps=4,\n"
DEPENDENT = "        launch_pdl=True,\n"
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
WAIT\
    gathered = tl.load(parts + cells, mask=(lanes < splits)[:, None] & inside[None, :], other=0.0)
    logs = tl.load(sizes + row * splits + lanes, mask=lanes < splits, other=float("-inf"))
    known = lanes * span < length
    logs = tl.where(known, logs, float("-inf"))
    shares = tl.where(known, tl.POWER(logs - tl.max(logs, 0)), 0.0)
    result = tl.sum(tl.where(known[:, None], gathered, 0.0) * shares[:, None], 0) / tl.sum(shares, 0)
    tl.store(out + row * dim + columns, tl.where(length > 0, result, 0.0), mask=inside)
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
    group_width = max(16, triton.next_power_of_2(group))
    width = max(16, triton.next_power_of_2(dim))
    if splits == 1:
        _attend[(batch, kv_heads)](
            q,
            k_cache,
            v_cache,
            seq_lens,
            out,
            max_seq,
            kv_heads,
            group,
            dim,
            scale,
            BLOCK_N=block,
            BLOCK_G=group_width,
            BLOCK_D=width,
            UNROLL=unroll,
            CACHE_HINT=hint,
            num_warps=warps,
            num_stages=stages,
            maxnreg=None if registers == 0 else int(registers),
        )
        return
    parts = torch.empty((batch, q_heads, splits, dim), dtype=torch.float32, device=q.device)
    sizes = torch.empty((batch, q_heads, splits), dtype=torch.float32, device=q.device)
    _attend_part[(batch * kv_heads * splits,)](
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
        BLOCK_G=group_width,
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
