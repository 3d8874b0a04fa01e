"""The launches that decode attention takes on Triton, as text: what ``run`` is made of once sequences may be split."""

from __future__ import annotations

from harness.agents.playbook import edit


def fixed() -> str:
    """``run`` with as many parts as PARAMS say."""
    return HEAD + FIXED + TAIL


def chosen() -> str:
    """``run`` with parts chosen by length and batch: as many as are under way at once, so rounded down, or none."""
    return HEAD + CHOSEN + TAIL


def launched(source: str) -> str:
    """``source`` with combining programs of ``COLUMNS`` columns launched while parts are still computed."""
    text = edit.function_text(source, "run").replace(COMBINE_GRID, EARLY_GRID).replace(COMBINE_LAUNCH, EARLY_LAUNCH)
    return edit.replace_function(source, "run", text)


COLUMNS = 32
"""Columns of a combining program that is launched early: its only warp asks for all parts at once."""
COMBINE_GRID, EARLY_GRID = "_combine[(batch * q_heads,)]", f"_combine[(batch * q_heads, triton.cdiv(dim, {COLUMNS}))]"
COMBINE_LAUNCH = "        PARTS=triton.next_power_of_2(splits),\n        BLOCK_D=width,\n        num_warps=4,\n"
EARLY_LAUNCH = COMBINE_LAUNCH.replace("BLOCK_D=width", f"COLUMNS={COLUMNS}").replace("4,", "1,") + \
    "        launch_pdl=True,\n"
HEAD = """\
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
    # Positions of more than 256 bytes: fewer in a block, whose stages then fit shared memory whatever their number.
    block = max(16, int(block) // max(1, triton.next_power_of_2(dim) * q.element_size() // 256))
    group = q_heads // kv_heads
"""
FIXED = """\
    most = PARAMS["SPLITS"]
    if isinstance(most, dict):
        most = most[bucket]
    span = triton.cdiv(triton.cdiv(max_seq, most), block) * block
"""
CHOSEN = """\
    most, least, programs = PARAMS["SPLITS"], PARAMS["SPAN"], PARAMS["PROGRAMS"]
    if isinstance(most, dict):
        most = most[bucket]
    if isinstance(least, dict):
        least = least[bucket]
    if isinstance(programs, dict):
        programs = programs[bucket]
    programs = torch.cuda.get_device_properties(q.device).multi_processor_count * int(programs)
    wanted = min(most, max(1, programs // (batch * kv_heads)))
    span = max(least, triton.cdiv(triton.cdiv(max_seq, wanted), block) * block)
"""
TAIL = """\
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
