"""What the torch side of an operator offers, and how the evaluator loads it. Importing this module loads no torch.

Arrays are dense CPU tensors by argument name. Each implementation module defines

``make_inputs(dims, regimes, dtype, generator, attributes)``: inputs quantised to ``dtype``; with several regimes the
rows (or sequences) are shared out among them;
``reference(inputs, attributes)``: outputs in float64 from inputs upcast after quantisation;
``magnitude(inputs, attributes)``: per output the pair (scale, conditioning), float64, broadcastable to the output. The
scale is the operator on absolute values, what a relative error refers to; the conditioning counts the float32 roundings
that any honest algorithm passes on besides those of its sums;
``reference_and_magnitude(inputs, attributes)``, where a module has it: both of them, the same bits, for less;
``honest(inputs, attributes)``: outputs of a plain implementation in the inputs' dtype with float32 accumulation;
``libraries(inputs, attributes)``: name -> function that computes the outputs with that library;
``relations(inputs, attributes, generator)``: metamorphic relations that hold for these inputs;
``exact_probes(dims, dtype, generator)``: problems whose sums are exact in float32, in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

from harness.operators.base import Dims, OperatorSpec

if TYPE_CHECKING:
    import torch

    Tensors = dict[str, torch.Tensor]
else:
    Tensors = dict[str, Any]

Attributes = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Relation:
    """A transformed problem whose outputs follow from the outputs of the original one.

    ``outputs`` maps the original outputs to the expected ones; ``exact`` demands equal bits, otherwise both sides'
    bounds are allowed for. ``original`` are inputs of an original of its own, where the relation needs special ones.
    """

    name: str
    inputs: Tensors
    attributes: dict[str, float]
    outputs: Callable[[Tensors], Tensors]
    exact: bool
    original: Tensors | None = None


@dataclass(frozen=True, slots=True)
class ExactProbe:
    """A problem whose sums are exact in float32 in every order of evaluation: no tolerance applies.

    ``roundings`` of float32, relative to the answer, are left to a float32 result where a root, a quotient or an
    exponential may still round; a result in half precision must be the right one always.
    """

    name: str
    inputs: Tensors
    attributes: dict[str, float]
    outputs: Tensors
    roundings: float = 0.0


class Implementation(Protocol):
    """The functions described in this module's docstring."""

    def make_inputs(
        self,
        dims: Dims,
        regimes: tuple[str, ...],
        dtype: torch.dtype,
        generator: torch.Generator,
        attributes: Attributes,
    ) -> Tensors: ...

    def reference(self, inputs: Tensors, attributes: Attributes) -> Tensors: ...

    def magnitude(
        self, inputs: Tensors, attributes: Attributes
    ) -> dict[str, tuple[torch.Tensor, torch.Tensor | float]]: ...

    def honest(self, inputs: Tensors, attributes: Attributes) -> Tensors: ...

    def libraries(self, inputs: Tensors, attributes: Attributes) -> dict[str, Callable[[], Tensors]]: ...

    def relations(self, inputs: Tensors, attributes: Attributes, generator: torch.Generator) -> list[Relation]: ...

    def exact_probes(self, dims: Dims, dtype: torch.dtype, generator: torch.Generator) -> list[ExactProbe]: ...


def load_implementation(spec: OperatorSpec) -> Implementation:
    """Import the operator's torch module (about two seconds the first time, for torch itself)."""
    return cast(Implementation, import_module(spec.implementation))


def reference_and_magnitude(implementation: Implementation, inputs: Tensors, attributes: Attributes
                            ) -> tuple[Tensors, dict[str, tuple[torch.Tensor, torch.Tensor | float]]]:
    """What ``reference`` and ``magnitude`` give, in one go where the module can."""
    both = getattr(implementation, "reference_and_magnitude", None)
    if both is not None:
        return cast(Any, both(inputs, attributes))
    return implementation.reference(inputs, attributes), implementation.magnitude(inputs, attributes)
