"""Decode attention in torch: inputs, float64 reference, honest implementation and relations."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn.functional import scaled_dot_product_attention

from harness.operators.base import Dims
from harness.operators.decode_attention.regimes import fill_sequence
from harness.operators.implementation import Attributes, ExactProbe, Relation, Tensors
from harness.operators.values import normal, quantise


def make_inputs(
    dims: Dims, regimes: tuple[str, ...], dtype: torch.dtype, generator: torch.Generator, attributes: Attributes
) -> Tensors:
    """q, caches and lengths; sequences are shared out among the regimes; cache entries past a length are NaN."""
    batch, kv_heads, dim, max_seq = dims["batch"], dims["kv_heads"], dims["dim"], dims["max_seq"]
    q = normal((batch, dims["q_heads"], dim), generator)
    k = normal((batch, max_seq, kv_heads, dim), generator)
    v = normal((batch, max_seq, kv_heads, dim), generator)
    lengths = torch.empty(batch, dtype=torch.int32)
    order = torch.randperm(batch, generator=generator).tolist()
    for turn, item in enumerate(order):
        regime = regimes[turn % len(regimes)]
        lengths[item] = fill_sequence(regime, turn, q[item], k[item], v[item], dtype, attributes["scale"], generator)
    past = torch.arange(max_seq)[None, :] >= lengths[:, None]
    k[past] = torch.nan
    v[past] = torch.nan
    return {"q": quantise(q, dtype), "k_cache": quantise(k, dtype), "v_cache": quantise(v, dtype), "seq_lens": lengths}


def _opened(inputs: Tensors, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """q [b, h, d], k and v [b, h, s, d] with heads repeated and invalid entries 0, mask [b, 1, s]; all in ``dtype``."""
    q, lengths = inputs["q"].to(dtype), inputs["seq_lens"]
    group = q.shape[1] // inputs["k_cache"].shape[2]
    valid = torch.arange(inputs["k_cache"].shape[1])[None, :] < lengths[:, None]
    caches = []
    for name in ("k_cache", "v_cache"):
        clean = torch.where(valid[:, :, None, None], inputs[name], 0).to(dtype)
        caches.append(clean.transpose(1, 2).repeat_interleave(group, dim=1))
    return q, caches[0], caches[1], valid[:, None, :]


def _shares(q: torch.Tensor, k: torch.Tensor, valid: torch.Tensor, scale: float) -> torch.Tensor:
    """Probabilities [b, h, s]; zeros where the length is 0."""
    scores = torch.einsum("bhd,bhsd->bhs", q, k) * scale
    scores = scores.masked_fill(~valid, -torch.inf)
    powers = torch.exp(scores - scores.amax(-1, keepdim=True)).masked_fill(~valid, 0.0)
    return powers / powers.sum(-1, keepdim=True).clamp_min(torch.finfo(powers.dtype).tiny)


def reference(inputs: Tensors, attributes: Attributes) -> Tensors:
    """softmax(scale q.K) V over the valid positions in float64."""
    q, k, v, valid = _opened(inputs, torch.float64)
    return {"out": torch.einsum("bhs,bhsd->bhd", _shares(q, k, valid, attributes["scale"]), v)}


def magnitude(inputs: Tensors, attributes: Attributes) -> dict[str, tuple[torch.Tensor, torch.Tensor | float]]:
    """sum p |v|, and the largest scale * sum |q k|: the roundings of a score that its exponential inherits."""
    q, k, v, valid = _opened(inputs, torch.float64)
    shares = _shares(q, k, valid, attributes["scale"])
    scale = torch.einsum("bhs,bhsd->bhd", shares, v.abs())
    products = torch.einsum("bhd,bhsd->bhs", q.abs(), k.abs()) * abs(attributes["scale"])
    return {"out": (scale, products.amax(-1, keepdim=True))}


def honest(inputs: Tensors, attributes: Attributes) -> Tensors:
    """Float32 sums; in half precision the probabilities are rounded to the inputs' dtype before P.V."""
    dtype = inputs["q"].dtype
    q, k, v, valid = _opened(inputs, torch.float32)
    shares = _shares(q, k, valid, attributes["scale"]).to(dtype).float()
    return {"out": torch.einsum("bhs,bhsd->bhd", shares, v).to(dtype)}


def libraries(inputs: Tensors, attributes: Attributes) -> dict[str, Callable[[], Tensors]]:
    """PyTorch's scaled_dot_product_attention with a length mask; empty sequences are set to 0 as the contract asks."""
    q, k, v, valid = _opened(inputs, inputs["q"].dtype)
    mask = valid[:, None]

    def attend() -> Tensors:
        out = scaled_dot_product_attention(q[:, :, None], k, v, attn_mask=mask, scale=attributes["scale"])[:, :, 0]
        return {"out": out.masked_fill((inputs["seq_lens"] == 0)[:, None, None], 0.0)}

    return {"torch sdpa": attend}


def relations(inputs: Tensors, attributes: Attributes, generator: torch.Generator) -> list[Relation]:
    """Doubling values doubles the result bit for bit; positions may be permuted; only scale * q counts."""
    exact = inputs["q"].dtype is not torch.float16
    same = dict(attributes)
    shortest = int(inputs["seq_lens"].min())
    order = torch.arange(inputs["k_cache"].shape[1])
    order[:shortest] = torch.randperm(shortest, generator=generator)
    permuted = {name: inputs[name][:, order] for name in ("k_cache", "v_cache")}
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
        Relation("cache positions permuted", {**inputs, **permuted}, same, lambda outputs: outputs, exact=False),
    ]


def exact_probes(dims: Dims, dtype: torch.dtype, generator: torch.Generator) -> list[ExactProbe]:
    """One key scores at least 512 above the others, so that the answer is its value, bit for bit."""
    batch, max_seq, kv_heads, dim = dims["batch"], dims["max_seq"], dims["kv_heads"], dims["dim"]
    v = normal((batch, max_seq, kv_heads, dim), generator).to(dtype)
    k = torch.zeros(batch, max_seq, kv_heads, dim)
    chosen = torch.randint(0, max_seq, (batch, kv_heads), generator=generator)
    items, heads = torch.arange(batch)[:, None], torch.arange(kv_heads)[None, :]
    k[items, chosen, heads] = 512.0 / dim
    q = torch.ones(batch, dims["q_heads"], dim)
    picked = v[items, chosen, heads].repeat_interleave(dims["q_heads"] // kv_heads, dim=1)
    inputs = {
        "q": q.to(dtype),
        "k_cache": k.to(dtype),
        "v_cache": v,
        "seq_lens": torch.full((batch,), max_seq, dtype=torch.int32),
    }
    return [ExactProbe("one key takes all", inputs, {"scale": 1.0}, {"out": picked})]
