"""One call's worth of arrays: the judge's own copy of the inputs, and the memory lent to the worker."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass

import torch

from harness.domain.verdict import Reason
from harness.domain.vocabulary import Outcome, Stage
from harness.evaluation.buffers import Layout, OutputBlock, dtype_of, lend_input
from harness.evaluation.ports import Lent
from harness.operators.base import OperatorSpec
from harness.operators.implementation import Tensors


@dataclass(frozen=True, slots=True)
class Collected:
    """What a worker left in the outputs: values (copies) and, per output, where the poison still stands."""

    values: Tensors
    untouched: Tensors


class Lending:
    """Inputs and outputs of one call in signature order. Close it, or use it as a context."""

    def __init__(
        self,
        spec: OperatorSpec,
        inputs: Tensors,
        attributes: dict[str, float],
        dtype: str,
        layout: Layout = "dense",
    ) -> None:
        """``inputs`` are dense CPU tensors by name; ``layout`` applies to arguments that may be strided, and a shifted
        base (``offset``) to all of them. Outputs get shapes from the input's sizes and are poisoned."""
        self.spec = spec
        self.inputs = inputs
        self.attributes = dict(attributes)
        self.dtype = dtype
        self._fds: list[int] = []
        self._outputs: dict[str, OutputBlock] = {}
        lent: list[Lent] = []
        sizes = _sizes(spec, inputs)
        try:
            for argument in spec.arguments:
                if argument.kind == "input":
                    chosen: Layout = "dense" if layout == "strided" and not argument.strided else layout
                    item = lend_input(argument.name, inputs[argument.name], chosen)
                    self._fds.append(item.fd)
                    lent.append(item)
                else:
                    shape = tuple(sizes[dim] for dim in argument.dims)
                    block = OutputBlock(
                        argument.name,
                        shape,
                        dtype_of(argument.dtype or dtype),
                        "offset" if layout == "offset" else "dense",
                    )
                    self._outputs[argument.name] = block
                    lent.append(block.lent)
            self.poison()
        except BaseException:
            self.close()
            raise
        self.lent = tuple(lent)

    def poison(self) -> None:
        """Fill outputs with fresh poison and restore their guard bands; do so before every call."""
        for block in self._outputs.values():
            block.poison()

    def collect(self) -> Collected:
        """Copy the outputs; the worker must be frozen."""
        values: Tensors = {}
        untouched: Tensors = {}
        for name, block in self._outputs.items():
            values[name], untouched[name] = block.read()
        return Collected(values, untouched)

    def broken_guards(self, stage: Stage, case: str | None = None) -> list[tuple[Outcome, Reason]]:
        """A reason for every guard band that changed since the last poison."""
        reasons = []
        for name, block in self._outputs.items():
            for overrun in block.overruns():
                where = "past the end" if overrun.side == "after" else "before the start"
                text = (
                    f"The kernel wrote outside output '{name}': up to {overrun.elements} element(s) {where} of an "
                    f"array of shape {tuple(block.lent.shape)}. Mask the store or bound the loop by the real size."
                )
                reasons.append((Outcome.OUT_OF_BOUNDS, Reason("guard_broken", stage, text, case=case)))
        return reasons

    def close(self) -> None:
        """Give the memory back; idempotent."""
        for fd in self._fds:
            with contextlib.suppress(OSError):
                os.close(fd)
        self._fds.clear()
        for block in self._outputs.values():
            block.close()
        self._outputs.clear()

    def __enter__(self) -> Lending:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _sizes(spec: OperatorSpec, inputs: dict[str, torch.Tensor]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for argument in spec.inputs:
        sizes.update(zip(argument.dims, inputs[argument.name].shape, strict=True))
    return sizes
