"""Relations of every operator whose rows are independent and whose columns are alike."""

from __future__ import annotations

from collections.abc import Callable

import torch

from harness.operators.implementation import Attributes, Relation, Tensors


def every(change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Tensors], Tensors]:
    """``change`` of each output."""
    return lambda outputs: {name: change(values) for name, values in outputs.items()}


def only(name: str, change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Tensors], Tensors]:
    """``change`` of the output called ``name``; the others stay as they are."""
    return lambda outputs: {one: change(values) if one == name else values for one, values in outputs.items()}


def row_symmetries(inputs: Tensors, attributes: Attributes, generator: torch.Generator) -> list[Relation]:
    """Columns permuted, rows in another order, rows given twice. Inputs and outputs are [rows, cols]; an input of one
    axis holds a value for each column."""
    same = dict(attributes)
    order = torch.randperm(next(iter(inputs.values())).shape[-1], generator=generator)

    def rows(change: Callable[[torch.Tensor], torch.Tensor]) -> Tensors:
        return {name: change(values) if values.dim() > 1 else values for name, values in inputs.items()}

    def twice(values: torch.Tensor) -> torch.Tensor:
        return torch.cat([values, values])

    def flipped(values: torch.Tensor) -> torch.Tensor:
        return values.flip(0)

    def permuted(values: torch.Tensor) -> torch.Tensor:
        return values[..., order]

    return [
        Relation("columns of all inputs permuted alike give permuted columns", every(permuted)(inputs), same,
                 every(permuted), exact=False),
        Relation("rows in another order give results in that order", rows(flipped), same, every(flipped), exact=False),
        Relation("rows given twice give results twice", rows(twice), same, every(twice), exact=False),
    ]
