"""What a library peer is. No torch is loaded here; ``build`` functions load what they need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.domain.vocabulary import Backend
from harness.operators.base import Dims

if TYPE_CHECKING:
    import torch

    Tensors = dict[str, torch.Tensor]
else:
    Tensors = dict[str, Any]

Function = Callable[[Tensors], Tensors]
"""Computes the outputs, by name, from one slot's inputs, by name."""


class Absent(Exception):
    """This library cannot be measured here; the sentence says why."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One shape as a peer's ``build`` sees it: sizes, attributes, and ``inputs`` on the device for what is constant."""

    dims: Dims
    attributes: Mapping[str, float]
    inputs: Tensors
    device: str


@dataclass(frozen=True, slots=True)
class Peer:
    """One way in which a library computes an operator.

    ``build`` gives the function for one shape, and may raise ``Absent``. ``arrange`` gives inputs in the layout that
    the library prefers, as views; they are copied into memory of that layout outside the clock. ``in_place``: it
    overwrites its inputs. ``graph``: it can be captured in a CUDA graph; ``detail`` says how it is asked. ``free``
    names outputs whose values the library does not fix (the order of equal keys); ``holds`` says whether they are right
    all the same. ``rounds`` gives, per output, what may be lost besides because the library rounds an intermediate
    result to the dtype: a library that does so still computes the operator.
    """

    name: str
    package: str
    build: Callable[[Problem], Function]
    detail: str = ""
    backends: tuple[Backend, ...] = (Backend.TRITON,)
    arrange: Callable[[Tensors], Tensors] | None = None
    in_place: bool = False
    graph: bool = True
    free: tuple[str, ...] = ()
    holds: Callable[[Tensors, Tensors], bool] | None = None
    rounds: Callable[[Tensors], Tensors] | None = None


BOTH = (Backend.TRITON, Backend.NUMBA)
EAGER, COMPILE, LIGER = "torch eager", "torch.compile", "Liger"
MODE = "max-autotune-no-cudagraphs"
"""How torch.compile is asked: its own graphs would be captured inside ours."""
