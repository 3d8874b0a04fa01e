"""Decode attention in torch: inputs, float64 reference, honest implementation and relations."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn.functional import scaled_dot_product_attention

from harness.operators.base import Dims
from harness.operators.decode_attention.probes import exact_probes, relations
from harness.operators.decode_attention.regimes import LENGTHS_ALONE, fill_sequence
from harness.operators.implementation import Attributes, Tensors
from harness.operators.summation import FAINT, U32, serial_loss
from harness.operators.values import normal, quantise, quantised_normal

SMALL_SHARE = 1e-4
"""Probabilities above this are not lost beside the others: a float32 sum keeps 6e-8 of its size."""
LONG = 1 << 18
"""Elements of a head's values from which on only faint products are looked at: few are, mostly."""
ONE_BY_ONE = 256
"""Sequences that a regime is written into; tens of thousands would take seconds."""
TOGETHER = 1024
"""Positions whose products are looked at together, so that they stay in a core's cache."""
Magnitudes = dict[str, tuple[torch.Tensor, torch.Tensor | float]]
WHOLE = 64
"""Elements that torch converts at a time; what is left over at an array's end is converted in another way."""
MARGIN = 1.0 + 1e-5
"""Keeps the roundings of float32 from hiding a product."""


def make_inputs(
    dims: Dims, regimes: tuple[str, ...], dtype: torch.dtype, generator: torch.Generator, attributes: Attributes
) -> Tensors:
    """q, caches and lengths; sequences are shared out among the regimes; cache entries past a length are NaN."""
    batch, kv_heads, dim, max_seq = dims["batch"], dims["kv_heads"], dims["dim"], dims["max_seq"]
    plain = batch <= ONE_BY_ONE and all(regime in LENGTHS_ALONE or regime.startswith("length ")
                                        for regime in regimes[:batch])
    if plain and dtype is not torch.float32 and max_seq * kv_heads * dim % WHOLE == 0:
        return _plain(dims, regimes, dtype, generator, attributes)
    q = normal((batch, dims["q_heads"], dim), generator)
    k = normal((batch, max_seq, kv_heads, dim), generator)
    v = normal((batch, max_seq, kv_heads, dim), generator)
    lengths = torch.empty(batch, dtype=torch.int32)
    order = torch.randperm(batch, generator=generator).tolist()
    if batch > ONE_BY_ONE:  # the rest is normal, of any length
        lengths = torch.randint(0, max_seq + 1, (batch,), generator=generator, dtype=torch.int32)
        order = order[:ONE_BY_ONE]
    if regimes == ("many",):  # tens of thousands of sequences: no loop over them
        order, lengths = [], torch.randint(0, max_seq + 1, (batch,), generator=generator, dtype=torch.int32)
    for turn, item in enumerate(order):
        regime = regimes[turn % len(regimes)]
        lengths[item] = fill_sequence(regime, turn, q[item], k[item], v[item], dtype, attributes["scale"], generator)
    caches = {"k_cache": k, "v_cache": v}
    del k, v  # each is given back as soon as it is quantised: they can have a gigabyte
    return {"q": quantise(q, dtype), **{name: _cache(caches.pop(name), lengths, dtype) for name in tuple(caches)},
            "seq_lens": lengths}


def _plain(
    dims: Dims, regimes: tuple[str, ...], dtype: torch.dtype, generator: torch.Generator, attributes: Attributes
) -> Tensors:
    """Contents whose regimes decide about lengths alone: caches are drawn as they are kept, in half the memory."""
    batch, max_seq = dims["batch"], dims["max_seq"]
    q = normal((batch, dims["q_heads"], dims["dim"]), generator)
    shape = (batch, max_seq, dims["kv_heads"], dims["dim"])
    caches = {name: quantised_normal(shape, dtype, generator) for name in ("k_cache", "v_cache")}
    lengths, untouched = torch.empty(batch, dtype=torch.int32), torch.empty(shape[1:], device="meta")
    for turn, item in enumerate(torch.randperm(batch, generator=generator).tolist()):
        lengths[item] = fill_sequence(regimes[turn % len(regimes)], turn, q[item], untouched, untouched, dtype,
                                      attributes["scale"], generator)
    past = torch.full((WHOLE,), torch.nan).to(dtype).view(torch.int16)[0]  # NaN as arrays of float32 are rounded to it
    for cache in caches.values():
        for item, length in enumerate(lengths.tolist()):
            cache[item, length:].view(torch.int16).fill_(past)
    return {"q": quantise(q, dtype), **caches, "seq_lens": lengths}


def _cache(values: torch.Tensor, lengths: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """``values`` [batch, max_seq, kv_heads, dim] with NaN past the lengths, quantised."""
    if len(values) > ONE_BY_ONE:
        values[torch.arange(values.shape[1])[None, :] >= lengths[:, None]] = torch.nan
    else:
        for item, length in enumerate(lengths.tolist()):
            values[item, length:] = torch.nan
    return quantise(values, dtype)


def _opened(inputs: Tensors, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """q [b, g, r, d] by the cache head that r query heads share, k and v [b, g, s, d] with invalid entries 0, mask
    [b, 1, 1, s]; all in ``dtype``."""
    q, lengths = inputs["q"].to(dtype), inputs["seq_lens"]
    valid = torch.arange(inputs["k_cache"].shape[1])[None, :] < lengths[:, None]
    caches = []
    for name in ("k_cache", "v_cache"):
        if len(lengths) > ONE_BY_ONE:
            clean = torch.where(valid[:, :, None, None], inputs[name], 0).to(dtype)
        else:
            clean = inputs[name].to(dtype, copy=True, memory_format=torch.contiguous_format)
            for item, length in enumerate(lengths.tolist()):
                clean[item, length:] = 0
        caches.append(clean.transpose(1, 2))
    return q.unflatten(1, (inputs["k_cache"].shape[2], -1)), caches[0], caches[1], valid[:, None, None, :]


def _shares(q: torch.Tensor, k: torch.Tensor, valid: torch.Tensor, scale: float) -> torch.Tensor:
    """Probabilities [b, g, r, s]; zeros where the length is 0."""
    scores = q @ k.mT * scale
    scores = scores.masked_fill(~valid, -torch.inf)
    powers = torch.exp(scores - scores.amax(-1, keepdim=True)).masked_fill(~valid, 0.0)
    return powers / powers.sum(-1, keepdim=True).clamp_min(torch.finfo(powers.dtype).tiny)


def reference(inputs: Tensors, attributes: Attributes) -> Tensors:
    """softmax(scale q.K) V over the valid positions in float64."""
    q, k, v, valid = _opened(inputs, torch.float64)
    return {"out": (_shares(q, k, valid, attributes["scale"]) @ v).flatten(1, 2)}


def magnitude(inputs: Tensors, attributes: Attributes) -> Magnitudes:
    """sum p |v|, and what float32 passes on besides; the judge counts four roundings per unit.

    The exponential inherits the roundings of a score, for the largest scale * sum |q k|: beside a large first product
    every further one is rounded at its size, so they grow with the root of dim. Serial sums over positions lose terms
    far below the largest one, in the sum of probabilities and in P.V."""
    return reference_and_magnitude(inputs, attributes)[1]


def reference_and_magnitude(inputs: Tensors, attributes: Attributes) -> tuple[Tensors, Magnitudes]:
    """Both of them from one float64 copy of the caches."""
    q, k, v, valid = _opened(inputs, torch.float64)
    shares = _shares(q, k, valid, attributes["scale"])
    out = (shares @ v).flatten(1, 2)
    sizes = v.abs_()
    totals = shares @ sizes
    products = (q.abs() @ k.abs_().mT * abs(attributes["scale"])).amax(-1, keepdim=True)
    lost = serial_loss(shares) + _lost_values(shares, sizes, valid, totals)
    conditioning = products * max(1.0, q.shape[-1] ** 0.5 / 2) + lost / 4.0
    return {"out": out}, {"out": (totals.flatten(1, 2), conditioning.flatten(1, 2))}


def _lost_values(shares: torch.Tensor, sizes: torch.Tensor, valid: torch.Tensor, totals: torch.Tensor) -> torch.Tensor:
    """Roundings that a serial sum of p |v| can lose, [b, g, r, d]; 0 where no probability is small enough to matter.
    ``sizes`` are |v|, ``totals`` [b, g, r, d] these sums."""
    lost = torch.zeros_like(totals)
    some = ((shares < SMALL_SHARE) & valid).any(-1)
    if not bool(some.any()):
        return lost
    if sizes.shape[-2] * sizes.shape[-1] < LONG:
        items, heads, _ = torch.nonzero(some, as_tuple=True)
        lost[some] = serial_loss(shares[some][:, None, :] * sizes[items, heads].mT).squeeze(-1)
        return lost
    for item, head in torch.nonzero(some.any(-1)).tolist():
        size = sizes[item, head]
        rough = size.float()
        for row in torch.nonzero(some[item, head]).flatten().tolist():
            lost[item, head, row] = _faint(shares[item, head, row], size, rough, totals[item, head, row])
    return lost


def _faint(share: torch.Tensor, size: torch.Tensor, rough: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
    """``serial_loss`` of the products of ``share`` [s] and ``size`` [s, d], ``rough`` in float32, whose sums are
    ``total`` [d]: positions all of whose products are below a rounding are added up at once, of the others only faint
    products are looked at."""
    total = total.clamp_min(torch.finfo(torch.float64).tiny)
    units = share / U32  # a product is units * size / total roundings of its sum
    scale = total.float().clamp_min(torch.finfo(torch.float32).tiny)
    highest = torch.cat([(part / scale).amax(-1) for part in rough.split(TOGETHER)])
    below = units * highest < 1.0
    lost = torch.where(below, units, 0.0) @ size / total
    reach = torch.where(below | (share == 0), 0.0, MARGIN * FAINT / units).float()
    found = [torch.nonzero(part / scale < limit[:, None]) + torch.tensor([number * TOGETHER, 0])
             for number, (part, limit) in enumerate(zip(rough.split(TOGETHER), reach.split(TOGETHER), strict=True))]
    places, columns = torch.cat(found).unbind(1)
    roundings = units[places] * size[places, columns] / total[columns]
    lost.index_add_(0, columns, torch.where(roundings < FAINT, roundings.clamp_max(1.0), 0.0))
    return lost.nan_to_num(0.0, 0.0, 0.0)


def honest(inputs: Tensors, attributes: Attributes) -> Tensors:
    """Float32 sums; in half precision the probabilities are rounded to the inputs' dtype before P.V."""
    dtype = inputs["q"].dtype
    q, k, v, valid = _opened(inputs, torch.float32)
    shares = _shares(q, k, valid, attributes["scale"]).to(dtype).float()
    return {"out": (shares @ v).flatten(1, 2).to(dtype)}


def libraries(inputs: Tensors, attributes: Attributes) -> dict[str, Callable[[], Tensors]]:
    """PyTorch's scaled_dot_product_attention with a length mask; empty sequences are set to 0 as the contract asks."""
    q, k, v, mask = _opened(inputs, inputs["q"].dtype)

    def attend() -> Tensors:
        out = scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=attributes["scale"]).flatten(1, 2)
        return {"out": out.masked_fill((inputs["seq_lens"] == 0)[:, None, None], 0.0)}

    return {"torch sdpa": attend}


__all__ = ["exact_probes", "honest", "libraries", "magnitude", "make_inputs", "reference",
           "reference_and_magnitude", "relations"]
