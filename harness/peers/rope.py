"""Peers of rotary embeddings, whose caches of cosines and sines libraries keep as [seq, dim], each half twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.peers.base import BOTH, EAGER, LIGER, Function, Peer, Problem, Tensors
from harness.peers.compiled import called, compiled
from harness.peers.liger import PACKAGE, liger

NAMES, OUTPUTS = ("q", "k", "cos", "sin"), ("q_out", "k_out")


def rope(problem: Problem) -> Callable[..., Any]:
    """As model code writes it: x * cos + rotate_half(x) * sin, in the inputs' dtype."""
    import torch

    def rotated(x: Any, cos: Any, sin: Any) -> Any:
        one, two = x.chunk(2, -1)
        return x * cos + torch.cat((-two, one), -1) * sin

    def both(q: Any, k: Any, cos: Any, sin: Any) -> Any:
        cos, sin = (torch.cat((half, half), -1)[None, :, None, :] for half in (cos, sin))
        return rotated(q, cos, sin), rotated(k, cos, sin)

    return both


def _eager(problem: Problem) -> Function:
    return called(rope(problem), NAMES, OUTPUTS)


def _liger(problem: Problem) -> Function:
    import torch

    forward = liger("rope", "LigerRopeFunction")
    cos, sin = (torch.cat((problem.inputs[name],) * 2, -1)[None] for name in ("cos", "sin"))

    def call(inputs: Tensors) -> Tensors:
        q, k = forward.apply(inputs["q"].transpose(1, 2), inputs["k"].transpose(1, 2), cos, sin)
        return {"q_out": q.transpose(1, 2), "k_out": k.transpose(1, 2)}

    return call


PEERS: dict[str, tuple[Peer, ...]] = {
    "rope": (
        Peer(EAGER, "torch", _eager, "x * cos + rotate_half(x) * sin", BOTH),
        compiled(rope, NAMES, OUTPUTS),
        Peer(LIGER, PACKAGE, _liger, "rotates q and k where they lie; its cosines and sines are doubled beforehand",
             in_place=True),
    ),
}
