"""Top-k from group maxima that trusts there are never more candidates than fit: many ties are cut off."""

import torch
import triton
import triton.language as tl

PARAMS = {"STEPS": 8, "GROUPS": 16, "num_warps": 4}


@triton.jit
def _keys(values, BITS: tl.constexpr):
    # Integers in the order of the values: NaN above all, zeros of both signs alike.
    if BITS > 16:
        raw = values.to(tl.int32, bitcast=True)
        size = raw & 0x7FFFFFFF
        keys = tl.where(size > 0x7F800000, 0x7FFFFFFF, tl.where(raw < 0, -size, size))
    else:
        raw = values.to(tl.int16, bitcast=True).to(tl.int32)
        infinite: tl.constexpr = 0x7C00 if values.dtype == tl.float16 else 0x7F80
        size = raw & 0x7FFF
        keys = tl.where(size > infinite, 0x7FFF, tl.where(raw < 0, -size, size))
    return keys


@triton.jit
def _values(keys, BITS: tl.constexpr, dtype: tl.constexpr):
    # What the keys were made from.
    if BITS > 16:
        values = tl.where(keys < 0, -keys | (-0x7FFFFFFF - 1), keys).to(dtype, bitcast=True)
    else:
        values = tl.where(keys < 0, -keys | 0x8000, keys).to(tl.int16).to(dtype, bitcast=True)
    return values


@triton.jit
def _topk(
    x, values, indices, found, begin, x_stride, cols, k, BITS: tl.constexpr, STEPS: tl.constexpr, WIDTH: tl.constexpr,
    PASSES: tl.constexpr, GROUPS: tl.constexpr, KEPT: tl.constexpr, SLOW: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    source = x + row * x_stride
    kept = found + row * KEPT
    starts = begin + row * KEPT
    dtype: tl.constexpr = x.dtype.element_ty
    LOWEST: tl.constexpr = -0x7FFFFFFF - 1 if BITS > 16 else -0x8000
    TEAM: tl.constexpr = WIDTH // 8
    # The largest value of every group of 8 x STEPS, whole row, one read.
    lanes = tl.arange(0, WIDTH)
    passes = tl.arange(0, PASSES)
    keys = tl.full([TEAM, PASSES], LOWEST, tl.int32)
    number = 0
    for start in range(0, cols, STEPS * WIDTH):
        offsets = start + lanes
        peaks = tl.load(source + offsets, mask=offsets < cols, other=float("-inf")).to(tl.float32)
        for step in tl.static_range(1, STEPS):
            behind = offsets + step * WIDTH
            values_behind = tl.load(source + behind, mask=behind < cols, other=float("-inf")).to(tl.float32)
            peaks = tl.maximum(peaks, values_behind, propagate_nan=tl.PropagateNan.ALL)
        per_group = tl.max(tl.reshape(_keys(peaks.to(dtype), BITS), [TEAM, 8]), 1)
        keys = tl.where(passes[None, :] == number, per_group[:, None], keys)
        number += 1
    groups = tl.arange(0, TEAM)[:, None]
    first = passes[None, :] * (STEPS * WIDTH) + groups * 8
    known = first < cols
    least = tl.min(tl.min(tl.where(known, keys, 0x7FFFFFFF), 1), 0)
    keys = tl.where(known, keys, LOWEST)
    # The k-th largest of them bounds the k-th largest value from below.
    highest = tl.max(tl.max(keys, 1), 0)
    low = tl.where(tl.sum(tl.sum(known.to(tl.int32), 1), 0) >= k, least, LOWEST)
    high = tl.where(low == LOWEST, low, highest)
    for _ in range(BITS):
        if low < high:
            middle = (low & high) + ((low ^ high) >> 1) + ((low ^ high) & 1)
            enough = tl.sum(tl.sum((keys >= middle).to(tl.int32), 1), 0) >= k
            low = tl.where(enough, middle, low)
            high = tl.where(enough, high, middle - 1)
    hit = (keys >= low) & (first < cols)
    each = tl.sum(hit.to(tl.int32), 1)
    groups_hit = tl.sum(each, 0)
    count = k
    if groups_hit <= KEPT:
        if PASSES < 8:
            place = tl.reshape(tl.cumsum(tl.reshape(hit.to(tl.int32), [TEAM * PASSES]), 0), [TEAM, PASSES]) - 1
        else:
            place = (tl.cumsum(each, 0) - each)[:, None] + tl.cumsum(hit.to(tl.int32), 1) - 1
        tl.store(starts + place, first + tl.zeros([TEAM, PASSES], tl.int32), mask=hit)
        tl.debug_barrier()
        inner = tl.arange(0, 8 * STEPS)[None, :]
        columns_in = (inner // 8) * WIDTH + inner % 8
        count = 0
        for chunk in range(0, groups_hit, GROUPS):
            chosen = chunk + tl.arange(0, GROUPS)
            base = tl.load(starts + chosen, mask=chosen < groups_hit, other=0)
            where = tl.multiple_of(base, 8)[:, None] + columns_in
            wanted = (chosen[:, None] < groups_hit) & (where < cols)
            near = _keys(tl.load(source + where, mask=wanted, other=0.0), BITS)
            take = wanted & (near >= low)
            each_group = tl.sum(take.to(tl.int32), 1)
            slot = count + (tl.cumsum(each_group, 0) - each_group)[:, None] + tl.cumsum(take.to(tl.int32), 1) - 1
            packed = (near.to(tl.int64) << 32) | (0x7FFFFFFF - where)
            tl.store(kept + slot, packed, mask=take & (slot < KEPT))
            count += tl.sum(each_group, 0)
    count = tl.minimum(count, KEPT)
    tl.debug_barrier()
    # Every candidate's rank is the number of larger ones: no two are equal.
    order = tl.arange(0, KEPT)
    LAST: tl.constexpr = -0x7FFFFFFFFFFFFFFF
    mine = tl.load(kept + order, mask=order < count, other=LAST)
    rank = tl.zeros([KEPT], tl.int32)
    for start in range(0, count, 32):
        other = start + tl.arange(0, 32)
        theirs = tl.load(kept + other, mask=other < count, other=LAST)
        rank += tl.sum((theirs[:, None] > mine[None, :]).to(tl.int32), 0)
    chosen_value = _values((mine >> 32).to(tl.int32), BITS, dtype)
    chosen_index = 0x7FFFFFFF - (mine & 0x7FFFFFFF)
    out = (rank < k) & (order < count)
    tl.store(values + row * k + rank, chosen_value, mask=out)
    tl.store(indices + row * k + rank, chosen_index, mask=out)


def run(x, values, indices, *, k):
    rows, cols = x.shape
    steps, gathered, warps = PARAMS["STEPS"], PARAMS["GROUPS"], PARAMS["num_warps"]
    bucket = "short" if cols <= 8192 else "medium" if cols <= 65536 else "long"
    if isinstance(steps, dict):
        steps = steps[bucket]
    if isinstance(gathered, dict):
        gathered = gathered[bucket]
    if isinstance(warps, dict):
        warps = warps[bucket]
    width = 256 * warps
    kept = max(128, 2 * triton.next_power_of_2(k))
    found = torch.empty((rows, kept), dtype=torch.int64, device=x.device)
    begin = torch.empty((rows, kept), dtype=torch.int32, device=x.device)
    _topk[(rows,)](
        x, values, indices, found, begin, x.stride(0), cols, k, BITS=8 * x.element_size(), STEPS=steps, WIDTH=width,
        PASSES=triton.next_power_of_2(triton.cdiv(cols, steps * width)), GROUPS=gathered, KEPT=kept,
        SLOW=min(1024, width), num_warps=warps, maxnreg=96 if cols > 65536 else 80
    )
