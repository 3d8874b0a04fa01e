"""Peers of the operators that work row by row: norms, softmax, gated activations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.peers.base import BOTH, EAGER, LIGER, Function, Peer, Problem
from harness.peers.compiled import called, compiled
from harness.peers.liger import PACKAGE, liger


def rms_norm(problem: Problem) -> Callable[..., Any]:
    """``torch.nn.functional.rms_norm``."""
    from torch.nn.functional import rms_norm

    eps, shape = problem.attributes["eps"], (problem.dims["cols"],)
    return lambda x, weight: rms_norm(x, shape, weight, eps)


def add_rms_norm(problem: Problem) -> Callable[..., Any]:
    """The sum in the inputs' dtype, then ``rms_norm`` of it."""
    from torch.nn.functional import rms_norm

    eps, shape = problem.attributes["eps"], (problem.dims["cols"],)

    def both(x: Any, residual: Any, weight: Any) -> Any:
        total = x + residual
        return rms_norm(total, shape, weight, eps), total

    return both


def layer_norm(problem: Problem) -> Callable[..., Any]:
    """``torch.nn.functional.layer_norm``."""
    from torch.nn.functional import layer_norm

    eps, shape = problem.attributes["eps"], (problem.dims["cols"],)
    return lambda x, weight, bias: layer_norm(x, shape, weight, bias, eps)


def softmax(problem: Problem) -> Callable[..., Any]:
    """``torch.softmax`` over the last dimension."""
    import torch

    return lambda x: torch.softmax(x, -1)


def swiglu(problem: Problem) -> Callable[..., Any]:
    """``silu(gate) * up``, the way that models write it."""
    from torch.nn.functional import silu

    return lambda gate, up: silu(gate) * up


def _pair(expression: Callable[[Problem], Callable[..., Any]], names: tuple[str, ...],
          outputs: tuple[str, ...] = ("out",)) -> tuple[Peer, Peer]:
    def build(problem: Problem) -> Function:
        return called(expression(problem), names, outputs)

    return Peer(EAGER, "torch", build, backends=BOTH), compiled(expression, names, outputs)


def _liger_rms_norm(problem: Problem) -> Function:
    forward, eps = liger("rms_norm", "LigerRMSNormFunction"), problem.attributes["eps"]
    # Casting mode "gemma" keeps float32 until the result, as the operator's contract asks.
    return lambda inputs: {"out": forward.apply(inputs["x"], inputs["weight"], eps, 0.0, "gemma", False)}


def _liger_add_rms_norm(problem: Problem) -> Function:
    forward, eps = liger("fused_add_rms_norm", "LigerFusedAddRMSNormFunction"), problem.attributes["eps"]
    names = ("x", "residual", "weight")
    return called(lambda x, residual, weight: forward.apply(x, residual, weight, eps, 0.0, "gemma", False), names,
                  ("out", "residual_out"))


def _liger_layer_norm(problem: Problem) -> Function:
    forward, eps = liger("layer_norm", "LigerLayerNormFunction"), problem.attributes["eps"]
    return lambda inputs: {"out": forward.apply(inputs["x"], inputs["weight"], inputs["bias"], eps)}


def _liger_softmax(problem: Problem) -> Function:
    forward = liger("softmax", "LigerSoftmaxFunction")
    return lambda inputs: {"out": forward.apply(inputs["x"])}


def _liger_swiglu(problem: Problem) -> Function:
    forward = liger("swiglu", "LigerSiLUMulFunction")
    return lambda inputs: {"out": forward.apply(inputs["gate"], inputs["up"])}


def _liger(build: Callable[[Problem], Function], detail: str = "") -> Peer:
    return Peer(LIGER, PACKAGE, build, detail=detail)


PEERS: dict[str, tuple[Peer, ...]] = {
    "rms_norm": (*_pair(rms_norm, ("x", "weight")), _liger(_liger_rms_norm, "casting mode gemma (float32 throughout)")),
    "softmax": (*_pair(softmax, ("x",)), _liger(_liger_softmax)),
    "add_rms_norm": (*_pair(add_rms_norm, ("x", "residual", "weight"), ("out", "residual_out")),
                     _liger(_liger_add_rms_norm, "casting mode gemma (float32 throughout)")),
    "layer_norm": (*_pair(layer_norm, ("x", "weight", "bias")), _liger(_liger_layer_norm)),
    "swiglu": (*_pair(swiglu, ("gate", "up")), _liger(_liger_swiglu)),
}
