"""Value regimes of one sequence of decode attention."""

from __future__ import annotations

import math

import torch

from harness.operators.values import denormals, ends_and_edges, normal, stratified, uniform

VALUE_SCALE = {torch.float32: 1e30, torch.bfloat16: 1e30, torch.float16: 1e4}
SMALL = {torch.float32: (1e-6, 1e-20), torch.bfloat16: (1e-6, 1e-20), torch.float16: (1e-2, 1e-2)}
"""Scale of q and k, and of v, in the regime ``tiny``."""


def fill_sequence(
    regime: str,
    turn: int,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    dtype: torch.dtype,
    scale: float,
    generator: torch.Generator,
) -> int:
    """Turn normal values of one sequence into the regime's, in place, and return its length.

    ``q`` [q_heads, dim], ``k`` and ``v`` [max_seq, kv_heads, dim]; ``turn`` counts the sequences of the batch.
    Lengths are the whole cache or up to three less, except where the regime is about lengths.
    Raises ``KeyError`` for an unknown regime.
    """
    max_seq, kv_heads, dim = k.shape
    length = max(1, max_seq - turn % 4)
    if regime == "ragged":
        return (0, max_seq, 1, max_seq - 1)[turn] if turn < 4 else _draw(max_seq + 1, generator)
    if regime in LENGTHS:
        return LENGTHS[regime]
    if regime.startswith("length "):
        return _part_of_lengths(regime, max_seq, generator)
    if regime == "normal":
        return length
    if regime == "peaked":
        for head in range(kv_heads):
            _point_at(q, k, head, _draw(length, generator), 20.0, scale)
    elif regime == "stratified_spikes":
        heads = stratified(kv_heads, length, generator) if kv_heads > 1 else torch.tensor([_draw(length, generator)])
        ends = (0, length - 1)
        for head in range(kv_heads):
            position = ends[turn] if turn < 2 else int(heads[head])
            _point_at(q, k, head, position, 20.0, scale)
    elif regime == "ends":
        for head in range(kv_heads):
            for position in ends_and_edges(length, generator).tolist():
                _point_at(q, k, head, position, 20.0, scale)
    elif regime == "large_scores":
        q *= 50.0
    elif regime == "equal":
        k[:] = k[:1].clone()
    elif regime == "spike":
        v[_draw(length, generator), :, _draw(dim, generator)] = 10 ** float(uniform((1,), generator, 3.0, 4.0))
    elif regime == "offset":
        k += 2.0
        v += 100.0
    elif regime == "tiny":
        q *= SMALL[dtype][0]
        k *= SMALL[dtype][0]
        v *= SMALL[dtype][1]
    elif regime == "huge":
        v *= VALUE_SCALE[dtype]
    elif regime == "wide":
        reach = 1.5 if dtype is torch.float16 else 4.0  # whose small probabilities are multiples of 6e-8
        v *= 10 ** uniform(tuple(v.shape), generator, -reach, reach)
    elif regime == "zeros":
        v *= 0.0
    elif regime == "denormal":
        if dtype is torch.float16:  # a probability that it cannot hold times a normal value is as large as these
            v *= 0.125
        chosen = torch.rand(v.shape, generator=generator) < 2 / 3
        v[chosen] = denormals(tuple(v.shape), dtype, generator)[chosen]
    elif regime in ("rising", "falling"):
        _sort_by_score(q, k, length, regime == "falling")
    elif regime == "alternating":
        sign = 1.0 - 2.0 * (torch.arange(max_seq) % 2)
        v[:] = sign[:, None, None] * (100.0 + normal(tuple(v.shape), generator))
    else:
        raise KeyError(regime)
    return length


def _sort_by_score(q: torch.Tensor, k: torch.Tensor, length: int, falling: bool) -> None:
    """Order the keys of every cache head by the score that its first query head gives them, well apart."""
    for head in range(k.shape[1]):
        query = q[head * (q.shape[0] // k.shape[1])]
        order = (k[:length, head] @ query).argsort(descending=falling)
        k[:length, head] = 2.0 * k[:length, head][order]


def _part_of_lengths(regime: str, max_seq: int, generator: torch.Generator) -> int:
    """A length from part i of n (``length i of n``) of 1 to ``max_seq``, parts being equal in the logarithm."""
    _, part, _, parts = regime.split()
    place = (int(part) - float(uniform((1,), generator, 0.0, 1.0))) / int(parts)
    return min(max_seq, math.floor((max_seq + 1) ** place))


LENGTHS = {"empty": 0, "single": 1}
LENGTHS_ALONE = ("normal", "ragged", *LENGTHS)
"""Regimes that leave a sequence's values as they are, as those called ``length ...`` do."""


def _draw(limit: int, generator: torch.Generator) -> int:
    return int(torch.randint(0, limit, (1,), generator=generator))


def _point_at(q: torch.Tensor, k: torch.Tensor, head: int, position: int, lead: float, scale: float) -> None:
    """Make key ``position`` of cache head ``head`` score about ``lead`` for the first query head that reads it."""
    query = q[head * (q.shape[0] // k.shape[1])]
    norm = float(query.square().sum()) * abs(scale)
    k[position, head] = query * (lead / max(norm, 1e-3))
