"""Peers of the operators over a vocabulary: cross entropy and top-k."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.peers.base import BOTH, EAGER, LIGER, Function, Peer, Problem, Tensors
from harness.peers.compiled import called, compiled
from harness.peers.liger import PACKAGE, lacking, liger

LOGITS, LOSS = ("logits", "target"), ("loss",)
TOP = ("values", "indices")


def _loss(problem: Problem, *, upcast: bool) -> Callable[..., Any]:
    from torch.nn.functional import cross_entropy

    ignored = int(problem.attributes["ignore_index"])
    return lambda logits, target: cross_entropy(logits.float() if upcast else logits, target, ignore_index=ignored,
                                                reduction="none")


def cross_entropy(problem: Problem) -> Callable[..., Any]:
    """Logits made float32 first, so that the loss is float32."""
    return _loss(problem, upcast=True)


def topk(problem: Problem) -> Callable[..., Any]:
    """``torch.topk``, largest first, sorted."""
    import torch

    k = int(problem.attributes.get("k", problem.dims.get("k", 0)))
    return lambda x: tuple(torch.topk(x, k, -1))


def _plain(problem: Problem) -> Function:
    return called(_loss(problem, upcast=False), LOGITS, LOSS)


def _upcast(problem: Problem) -> Function:
    return called(cross_entropy(problem), LOGITS, LOSS)


def _liger_loss(problem: Problem) -> Function:
    forward, ignored = liger("cross_entropy", "LigerCrossEntropyFunction"), int(problem.attributes["ignore_index"])
    return lambda inputs: {"loss": forward.apply(inputs["logits"], inputs["target"], None, ignored, 0.0, 0.0, "none",
                                                 None, False)[0]}


def _eager_topk(problem: Problem) -> Function:
    return called(topk(problem), ("x",), TOP)


def _same_values(inputs: Tensors, outputs: Tensors) -> bool:
    """Whether the indices lead to the values, whatever order equal keys are in."""
    found = inputs["x"].gather(-1, outputs["indices"])
    values = outputs["values"]
    return bool(((found == values) | (found.isnan() & values.isnan())).all())


ANY_ORDER = "equal keys in any order"

PEERS: dict[str, tuple[Peer, ...]] = {
    "cross_entropy": (
        Peer(EAGER, "torch", _plain, "on the logits as they are; its loss has their dtype", BOTH),
        Peer("torch eager, float32", "torch", _upcast, "logits made float32 first", BOTH),
        compiled(cross_entropy, LOGITS, LOSS, detail="logits made float32 inside"),
        Peer(LIGER, PACKAGE, _liger_loss, "forward alone; its loss has the logits' dtype; reads the number of targets "
             "on the host in every call, so no graph can hold it", graph=False),
    ),
    "topk": (
        Peer(EAGER, "torch", _eager_topk, ANY_ORDER, BOTH, free=("indices",), holds=_same_values),
        compiled(topk, ("x",), TOP, detail=ANY_ORDER, free=("indices",), holds=_same_values),
        lacking("top-k"),
    ),
}
