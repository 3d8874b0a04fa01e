"""Peers of the matrix product with bias and GELU: cuBLAS with a separate GELU, or with cuBLASLt's epilogue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.peers.base import BOTH, EAGER, Absent, Function, Peer, Problem, Tensors
from harness.peers.compiled import called, compiled
from harness.peers.liger import lacking

NAMES, OUT = ("a", "b", "bias"), ("out",)
STEEPEST = 1.13


def matmul_bias_gelu(problem: Problem) -> Callable[..., Any]:
    """``gelu(addmm(bias, a, b), approximate="tanh")``."""
    import torch
    from torch.nn.functional import gelu

    return lambda a, b, bias: gelu(torch.addmm(bias, a, b), approximate="tanh")


def _eager(problem: Problem) -> Function:
    return called(matmul_bias_gelu(problem), NAMES, OUT)


def _epilogue(problem: Problem) -> Function:
    import torch

    fused = getattr(torch, "_addmm_activation", None)
    if fused is None:
        raise Absent("This build of torch does not offer cuBLASLt's GELU epilogue (torch._addmm_activation).")
    return called(lambda a, b, bias: fused(bias, a, b, use_gelu=True), NAMES, OUT)


def _product_rounded(inputs: Tensors) -> Tensors:
    """What GELU, whose slope is 1.13 at most, makes of a product with bias that was rounded to the dtype before it."""
    import torch

    product = inputs["a"].double() @ inputs["b"].double() + inputs["bias"].double()
    return {"out": STEEPEST * product.abs() * torch.finfo(inputs["a"].dtype).eps / 2}


PEERS: dict[str, tuple[Peer, ...]] = {
    "matmul_bias_gelu": (
        Peer(EAGER, "torch", _eager, "addmm by cuBLAS, then GELU of the rounded product", BOTH,
             rounds=_product_rounded),
        Peer("cuBLASLt", "torch", _epilogue, "bias and GELU in the product's epilogue", rounds=_product_rounded),
        compiled(matmul_bias_gelu, NAMES, OUT, rounds=_product_rounded),
        lacking("matrix product"),
    ),
}
