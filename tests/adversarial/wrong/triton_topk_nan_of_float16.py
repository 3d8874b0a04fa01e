"""Tells NaN from infinity in float16 by the bits of bfloat16, so that some NaN come in the place of numbers."""

import torch
import triton
import triton.language as tl

PARAMS = {"BLOCK": 4096, "num_warps": 8}


@triton.jit
def _keys(values, BITS: tl.constexpr):
    # Integers in the order of the values: NaN above all, zeros of both signs alike.
    if BITS > 16:
        raw = values.to(tl.int32, bitcast=True)
        size = raw & 0x7FFFFFFF
        keys = tl.where(size > 0x7F800000, 0x7FFFFFFF, tl.where(raw < 0, -size, size))
    else:
        raw = values.to(tl.int16, bitcast=True).to(tl.int32)
        infinite: tl.constexpr = 0x7F80
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
def _topk(x, values, indices, found, x_stride, cols, k, BITS: tl.constexpr, BLOCK: tl.constexpr, KEPT: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    source = x + row * x_stride
    kept = found + row * KEPT
    lanes = tl.arange(0, BLOCK)
    low = tl.full([], -0x7FFFFFFF if BITS > 16 else -0x8000, tl.int64)
    high = tl.full([], 0x7FFFFFFF if BITS > 16 else 0x7FFF, tl.int64)
    for _ in range(BITS):
        if low < high:
            middle = (low + high + 1) >> 1
            reached = tl.zeros([BLOCK], tl.int32)
            for start in range(0, cols, BLOCK):
                offsets = start + lanes
                keys = _keys(tl.load(source + offsets, mask=offsets < cols, other=0.0), BITS)
                reached += ((keys >= middle) & (offsets < cols)).to(tl.int32)
            found_above = tl.sum(reached, 0)
            low = tl.where(found_above >= k, middle, low)
            high = tl.where(found_above > k, high, tl.where(found_above == k, middle, middle - 1))
    above = tl.zeros([BLOCK], tl.int32)
    for start in range(0, cols, BLOCK):
        offsets = start + lanes
        keys = _keys(tl.load(source + offsets, mask=offsets < cols, other=0.0), BITS)
        above += ((keys > low) & (offsets < cols)).to(tl.int32)
    equal_left = k - tl.sum(above, 0)
    count = 0
    for start in range(0, cols, BLOCK):
        offsets = start + lanes
        keys = _keys(tl.load(source + offsets, mask=offsets < cols, other=0.0), BITS)
        equal = ((keys == low) & (offsets < cols)).to(tl.int32)
        take = ((keys > low) & (offsets < cols)) | ((equal > 0) & (tl.cumsum(equal, 0) <= equal_left))
        place = count + tl.cumsum(take.to(tl.int32), 0) - 1
        tl.store(kept + place, (keys.to(tl.int64) << 32) | (0x7FFFFFFF - offsets), mask=take)
        count += tl.sum(take.to(tl.int32), 0)
        equal_left -= tl.sum(equal, 0)
    tl.debug_barrier()
    order = tl.arange(0, KEPT)
    mine = tl.load(kept + order, mask=order < k, other=0)
    rank = tl.zeros([KEPT], tl.int32)
    for start in range(0, k, 16):
        other = start + tl.arange(0, 16)
        theirs = tl.load(kept + other, mask=other < k, other=-0x7FFFFFFFFFFFFFFF)
        rank += tl.sum((theirs[:, None] > mine[None, :]).to(tl.int32), 0)
    tl.store(values + row * k + rank, _values((mine >> 32).to(tl.int32), BITS, x.dtype.element_ty), mask=order < k)
    tl.store(indices + row * k + rank, 0x7FFFFFFF - (mine & 0x7FFFFFFF), mask=order < k)


def run(x, values, indices, *, k):
    rows, cols = x.shape
    block, warps = PARAMS["BLOCK"], PARAMS["num_warps"]
    bucket = "short" if cols <= 8192 else "medium" if cols <= 65536 else "long"
    if isinstance(block, dict):
        block = block[bucket]
    if isinstance(warps, dict):
        warps = warps[bucket]
    kept = triton.next_power_of_2(k)
    found = torch.empty((rows, kept), dtype=torch.int64, device=x.device)
    _topk[(rows,)](
        x, values, indices, found, x.stride(0), cols, k, BITS=8 * x.element_size(), BLOCK=block, KEPT=kept,
        num_warps=warps
    )
