"""Exact problems and metamorphic relations of decode attention."""

from __future__ import annotations

import torch

from harness.operators.base import Dims
from harness.operators.exact import odd_integers, roundings
from harness.operators.implementation import Attributes, ExactProbe, Relation, Tensors
from harness.operators.values import normal, signs

CACHES = ("k_cache", "v_cache")


def relations(inputs: Tensors, attributes: Attributes, generator: torch.Generator) -> list[Relation]:
    """Doubling values doubles the result bit for bit; what lies past a length does not count; positions may be
    permuted or given twice; a sequence or a group of heads alone gives its slice."""
    exact = inputs["q"].dtype is not torch.float16
    same = dict(attributes)
    batch, kv_heads = inputs["k_cache"].shape[0], inputs["k_cache"].shape[2]
    item = int(torch.randint(batch, (), generator=generator))
    head = int(torch.randint(kv_heads, (), generator=generator))
    group = inputs["q"].shape[1] // kv_heads
    mine = slice(head * group, (head + 1) * group)
    one_head = {name: inputs[name][:, :, head : head + 1].contiguous() for name in CACHES}
    return [
        Relation(
            "values times 2 double the result",
            {**inputs, "v_cache": inputs["v_cache"] * 2},
            same,
            lambda outputs: {"out": outputs["out"] * 2},
            exact,
        ),
        Relation(
            "q times 2 with half the scale changes nothing",
            {**inputs, "q": inputs["q"] * 2},
            {**same, "scale": attributes["scale"] / 2},
            lambda outputs: outputs,
            exact,
        ),
        Relation("other contents past the lengths change nothing", _past_replaced(inputs, generator), same,
                 lambda outputs: outputs, exact=True),
        Relation("cache positions permuted", _permuted(inputs, generator), same, lambda outputs: outputs, exact=False),
        Relation("the cache given twice changes nothing", _twice(inputs), same, lambda outputs: outputs, exact=False),
        Relation(
            f"sequence {item} alone gives its part of the result",
            {name: value[item : item + 1].contiguous() for name, value in inputs.items()}, same,
            lambda outputs: {"out": outputs["out"][item : item + 1]}, exact=False,
        ),
        Relation(
            f"cache head {head} alone gives its part of the result",
            {**inputs, **one_head, "q": inputs["q"][:, mine].contiguous()}, same,
            lambda outputs: {"out": outputs["out"][:, mine]}, exact=False,
        ),
    ]


def _past_replaced(inputs: Tensors, generator: torch.Generator) -> Tensors:
    """Noise and infinities where NaN stood past the lengths."""
    past = torch.arange(inputs["k_cache"].shape[1])[None, :] >= inputs["seq_lens"][:, None]
    changed = dict(inputs)
    for name in CACHES:
        cache = inputs[name].clone()
        noise = normal(tuple(cache.shape), generator) * 100
        noise[torch.rand(cache.shape, generator=generator) < 0.1] = torch.inf
        cache[past] = noise.to(cache.dtype)[past]
        changed[name] = cache
    return changed


def _permuted(inputs: Tensors, generator: torch.Generator) -> Tensors:
    """The same permutation of the positions that every sequence has, in both caches."""
    shortest = int(inputs["seq_lens"].min())
    order = torch.arange(inputs["k_cache"].shape[1])
    order[:shortest] = torch.randperm(shortest, generator=generator)
    return {**inputs, **{name: inputs[name][:, order] for name in CACHES}}


def _twice(inputs: Tensors) -> Tensors:
    """Caches of double size that hold every sequence's positions twice."""
    lengths = inputs["seq_lens"].tolist()
    changed = {**inputs, "seq_lens": inputs["seq_lens"] * 2}
    for name in CACHES:
        cache = torch.full_like(torch.cat([inputs[name], inputs[name]], 1), torch.nan)
        for item, length in enumerate(lengths):
            cache[item, :length] = inputs[name][item, :length]
            cache[item, length : 2 * length] = inputs[name][item, :length]
        changed[name] = cache
    return changed


def exact_probes(dims: Dims, dtype: torch.dtype, generator: torch.Generator) -> list[ExactProbe]:
    """Problems whose scores, probabilities and weighted sums are all exact."""
    probes = [_one_key(dims, dtype, generator), _close_keys(dims, dtype, generator)]
    if dims["dim"] >= 2:
        probes.append(_close_scores(dims, dtype, generator))
    if dims["max_seq"] >= 4:
        probes.append(_mean_of_values(dims, dtype, generator))
    return probes


def _full(dims: Dims) -> torch.Tensor:
    return torch.full((dims["batch"],), dims["max_seq"], dtype=torch.int32)


def _picked(dims: Dims, v: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """Values at position ``chosen`` [batch, kv_heads], for every query head."""
    items, heads = torch.arange(dims["batch"])[:, None], torch.arange(dims["kv_heads"])[None, :]
    return v[items, chosen, heads].repeat_interleave(dims["q_heads"] // dims["kv_heads"], dim=1)


def _cache_shape(dims: Dims) -> tuple[int, int, int, int]:
    return dims["batch"], dims["max_seq"], dims["kv_heads"], dims["dim"]


def _one_key(dims: Dims, dtype: torch.dtype, generator: torch.Generator) -> ExactProbe:
    """One key scores at least 512 above the others, so that the answer is its value, bit for bit."""
    v = normal(_cache_shape(dims), generator).to(dtype)
    k = torch.zeros(_cache_shape(dims))
    chosen = torch.randint(0, dims["max_seq"], (dims["batch"], dims["kv_heads"]), generator=generator)
    items, heads = torch.arange(dims["batch"])[:, None], torch.arange(dims["kv_heads"])[None, :]
    k[items, chosen, heads] = 512.0 / dims["dim"]
    q = torch.ones(dims["batch"], dims["q_heads"], dims["dim"])
    inputs = {"q": q.to(dtype), "k_cache": k.to(dtype), "v_cache": v, "seq_lens": _full(dims)}
    return ExactProbe("one key takes all", inputs, {"scale": 1.0}, {"out": _picked(dims, v, chosen)})


def _close_scores(dims: Dims, dtype: torch.dtype, generator: torch.Generator) -> ExactProbe:
    """Integer scores, the best two units above many others; the scale turns two units into 512.

    q holds odd integers of the dtype's full width over 2^8, k small ones times 2^7. A runner-up differs from the best
    key by -1 and +1 at two places where q differs by two: narrower operands round both to the same number, a narrower
    sum cannot tell the scores apart, and the answer is then a mix of values instead of one.
    """
    batch, max_seq, kv_heads, dim = _cache_shape(dims)
    width = odd_integers((batch, kv_heads, dim), dtype, generator)
    first, second = torch.randperm(dim, generator=generator)[:2].tolist()
    width[..., first] = width[..., first] // 4 * 4 + 1
    width[..., second] = width[..., first] - 2
    sign = signs((batch, kv_heads, dim), generator).double()
    best = torch.randint(1, 4, (batch, kv_heads, dim), generator=generator).double()
    best[..., first], best[..., second] = 2.0, 2.0
    chosen = torch.randint(0, max_seq, (batch, kv_heads), generator=generator)
    k = torch.randint(-1, 2, (batch, max_seq, kv_heads, dim), generator=generator).double()
    rivals = torch.rand(batch, max_seq, kv_heads, generator=generator) < 0.5
    second_best = best.clone()
    second_best[..., first] -= 1
    second_best[..., second] += 1
    k = torch.where(rivals[..., None], second_best[:, None], k)
    items, heads = torch.arange(batch)[:, None], torch.arange(kv_heads)[None, :]
    k[items, chosen, heads] = best
    q = (width * sign / 2.0**8).repeat_interleave(dims["q_heads"] // kv_heads, dim=1)
    v = normal((batch, max_seq, kv_heads, dim), generator).to(dtype)
    keys = (k * sign[:, None] * 2.0**7).to(dtype)
    inputs = {"q": q.to(dtype), "k_cache": keys, "v_cache": v, "seq_lens": _full(dims)}
    return ExactProbe("scores two units apart", inputs, {"scale": 512.0}, {"out": _picked(dims, v, chosen)})


def _close_keys(dims: Dims, dtype: torch.dtype, generator: torch.Generator) -> ExactProbe:
    """The same with the width in the keys: odd integers of the dtype's full width under q of 1 and -1.

    A runner-up differs from the best key at one place, by the two units around a multiple of 16, which every narrower
    format rounds to that multiple; all other keys score lower still.
    """
    batch, max_seq, kv_heads, dim = _cache_shape(dims)
    best = odd_integers((batch, kv_heads, dim), dtype, generator)
    place = int(torch.randint(0, dim, (), generator=generator))
    best[..., place] = (best[..., place] // 16).clamp_min(9) * 16 + 1
    sign = signs((batch, kv_heads, dim), generator).double()
    chosen = torch.randint(0, max_seq, (batch, kv_heads), generator=generator)
    lower = torch.randint(0, 3, (batch, max_seq, kv_heads, dim), generator=generator).double()
    lower[..., place] += 2
    rivals = torch.rand(batch, max_seq, kv_heads, generator=generator) < 0.5
    beside = torch.zeros(dim, dtype=torch.float64)
    beside[place] = 1
    k = best[:, None] - 2 * torch.where(rivals[..., None], beside, lower)
    items, heads = torch.arange(batch)[:, None], torch.arange(kv_heads)[None, :]
    k[items, chosen, heads] = best
    q = sign.repeat_interleave(dims["q_heads"] // kv_heads, dim=1)
    v = normal((batch, max_seq, kv_heads, dim), generator).to(dtype)
    inputs = {"q": q.to(dtype), "k_cache": (k * sign[:, None]).to(dtype), "v_cache": v, "seq_lens": _full(dims)}
    return ExactProbe("keys two units apart", inputs, {"scale": 256.0}, {"out": _picked(dims, v, chosen)})


def _mean_of_values(dims: Dims, dtype: torch.dtype, generator: torch.Generator) -> ExactProbe:
    """2^m equal scores, all others 512 below: the answer is the mean of 2^m values.

    In float32 the values are 12-bit integers and the mean is exact. In half precision two neighbouring numbers a and b
    are averaged, one of them two times more often than the other: the mean lies just beside their rounding tie.
    """
    batch, max_seq, kv_heads, dim = _cache_shape(dims)
    count = 1 << min(6, max_seq.bit_length() - 1)
    shares = torch.rand(batch, max_seq, kv_heads, generator=generator).argsort(1) < count
    k = torch.where(shares[..., None], 0.0, -512.0 / dim).expand(-1, -1, -1, dim)
    if dtype is torch.float32:
        v = odd_integers((batch, max_seq, kv_heads, dim), dtype, generator) * signs(
            (batch, max_seq, kv_heads, dim), generator)
        right = (v * shares[..., None]).sum(1) / count
    else:
        bits = {torch.bfloat16: 8, torch.float16: 11}[dtype]
        low = torch.randint(1 << (bits - 1), (1 << bits) - 1, (batch, kv_heads, dim), generator=generator).double()
        more = torch.randint(0, 2, (batch, kv_heads, dim), generator=generator) * 2 - 1
        order = torch.rand(batch, max_seq, kv_heads, dim, generator=generator)
        ranks = torch.where(shares[..., None], order, 2.0).argsort(1).argsort(1)
        upper = ranks < (count // 2 + more)[:, None]
        v = (low[:, None] + upper) / 2.0 ** (bits - 1)
        right = (low + (more > 0)) / 2.0 ** (bits - 1)
    out = right.repeat_interleave(dims["q_heads"] // kv_heads, dim=1)
    q = torch.ones(batch, dims["q_heads"], dim)
    inputs = {"q": q.to(dtype), "k_cache": k.to(dtype).contiguous(), "v_cache": v.to(dtype), "seq_lens": _full(dims)}
    return ExactProbe(f"the mean of {count} values", inputs, {"scale": 1.0}, {"out": out.to(dtype)},
                      roundings=roundings(max_seq))
