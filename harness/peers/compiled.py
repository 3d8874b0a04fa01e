"""torch.compile of the same expression that eager PyTorch runs, one fresh compilation per shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.peers.base import BOTH, COMPILE, MODE, Function, Peer, Problem, Tensors


def compiled(expression: Callable[[Problem], Callable[..., Any]], names: tuple[str, ...], outputs: tuple[str, ...], *,
             detail: str = "", mode: str = MODE, **more: Any) -> Peer:
    """A peer that compiles ``expression(problem)``, a function of the tensors called ``names`` that returns the
    ``outputs``, one of them or a tuple. On a CPU the mode is the default one."""

    def build(problem: Problem) -> Function:
        import torch

        torch.compiler.reset()  # shapes are compiled one by one, as constants
        chosen = mode if problem.device == "cuda" else "default"
        function = torch.compile(expression(problem), mode=chosen, dynamic=False)
        return called(function, names, outputs)

    words = f"mode {mode}" + (f"; {detail}" if detail else "")
    return Peer(COMPILE, "torch", build, detail=words, backends=BOTH, **more)


def called(function: Callable[..., Any], names: tuple[str, ...], outputs: tuple[str, ...]) -> Function:
    """``function`` of positional tensors as a function of inputs by name."""

    def call(inputs: Tensors) -> Tensors:
        result = function(*(inputs[name] for name in names))
        return dict(zip(outputs, result if isinstance(result, tuple) else (result,), strict=True))

    return call
