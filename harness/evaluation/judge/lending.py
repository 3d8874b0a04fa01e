"""One call's worth of arrays: the judge's own copy of the inputs, and the memory lent to the worker."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from harness.domain.verdict import Reason
from harness.domain.vocabulary import Outcome, Stage
from harness.evaluation.buffers import InputFile, Layout, OutputBlock, RenewableInput, dtype_of, lend_input
from harness.evaluation.ports import ROW_GAP, Lent
from harness.operators.base import OperatorSpec
from harness.operators.implementation import Tensors

ROUND_COLUMNS, ROUND_ROWS = 104_729, 7_919
"""Primes, so that starts near each other turn contents far apart."""


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
        *,
        gap: int = ROW_GAP,
        renewable: bool = False,
        sealed: Mapping[str, Lent] | None = None,
    ) -> None:
        """``inputs`` are dense CPU tensors by name; ``layout`` applies to arguments that may be strided (rows ``gap``
        elements apart), and a shifted base (``offset``) to all of them. Outputs get shapes from the sizes of inputs and
        attributes and are poisoned. With ``renewable`` (dense only) the judge can give the floating-point inputs that
        change per call new contents: ``renew``. ``sealed`` are memory files that hold dense inputs already
        (``of_files``)."""
        self.spec = spec
        self._inputs = inputs
        self._renewable: dict[str, RenewableInput] = {}
        self.attributes = dict(attributes)
        self.dtype = dtype
        self._fds: list[int] = [item.fd for item in (sealed or {}).values()]
        self._outputs: dict[str, OutputBlock] = {}
        lent: list[Lent] = []
        sizes = sizes_shown(spec, inputs, attributes)
        try:
            for argument in spec.arguments:
                if argument.kind == "input" and renewable and argument.per_call and dtype_of(
                        argument.dtype or dtype).is_floating_point:
                    block = RenewableInput(argument.name, inputs[argument.name])
                    self._renewable[argument.name] = block
                    self._fds.append(block.lent.fd)
                    lent.append(block.lent)
                elif argument.kind == "input" and sealed is not None:
                    lent.append(sealed[argument.name])
                elif argument.kind == "input":
                    chosen: Layout = "dense" if layout == "strided" and not argument.strided else layout
                    item = lend_input(argument.name, inputs[argument.name], chosen, gap)
                    self._fds.append(item.fd)
                    lent.append(item)
                else:
                    shape = tuple(sizes[dim] for dim in argument.dims)
                    output = OutputBlock(
                        argument.name,
                        shape,
                        dtype_of(argument.dtype or dtype),
                        "offset" if layout == "offset" else "dense",
                    )
                    self._outputs[argument.name] = output
                    lent.append(output.lent)
            self.poison()
        except BaseException:
            self.close()
            raise
        self.lent = tuple(lent)

    @classmethod
    def of_files(cls, spec: OperatorSpec, files: Mapping[str, InputFile], attributes: dict[str, float],
                 dtype: str) -> Lending:
        """Seal ``files``, which hold all inputs, and lend them as they are; nothing is copied."""
        sealed, inputs = {}, {}
        try:
            for name, file in files.items():
                sealed[name], inputs[name] = file.seal()
        except BaseException:
            for lent in sealed.values():
                os.close(lent.fd)
            for file in files.values():
                file.close()
            raise
        return cls(spec, inputs, attributes, dtype, sealed=sealed)

    @property
    def inputs(self) -> Tensors:
        """The judge's own copy of what the inputs hold now."""
        return self._inputs | {name: block.values() for name, block in self._renewable.items()}

    def renew(self, factors: torch.Tensor, start: int) -> None:
        """Multiply the first contents, turned, by ``factors`` from ``start`` on, wrapping round; the worker must be
        frozen.

        ``start`` says how far rows and columns are turned: a kernel that remembers where the largest values of a row
        were finds others there. Rows stay where an argument says how much of each is in use.
        """
        counted = any(argument.counts for argument in self.spec.arguments)
        drawn = start
        for block in self._renewable.values():
            shape = block.lent.shape
            count = math.prod(shape)
            start %= len(factors) - count + 1
            turns = {len(shape) - 1: drawn * ROUND_COLUMNS % shape[-1]}
            if len(shape) > 1 and not counted:
                turns[0] = drawn * ROUND_ROWS % shape[0]
            block.renew(factors[start : start + count], turns)
            start += count

    def put(self, inputs: Tensors) -> None:
        """Give the renewable inputs contents from ``inputs``, until they are renewed; the worker must be frozen."""
        for name, block in self._renewable.items():
            block.put(inputs[name])

    def touch(self) -> None:
        """Bring what ``renew`` wrote into the caches of the calling thread's core."""
        for block in self._renewable.values():
            block.touch()

    def pick(self, places: dict[str, torch.Tensor]) -> Tensors:
        """Copies of single elements of the outputs, by name; ``places`` are flat indices. The worker must be frozen."""
        return {name: block.pick(places[name]) for name, block in self._outputs.items()}

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
        self._renewable.clear()

    def __enter__(self) -> Lending:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def sizes_shown(spec: OperatorSpec, inputs: Tensors, attributes: Mapping[str, float]) -> dict[str, int]:
    """The sizes that the inputs of a call have, and those that attributes give."""
    sizes = {one.dim: int(attributes[one.name]) for one in spec.attributes if one.dim is not None}
    for argument in spec.inputs:
        sizes.update(zip(argument.dims, inputs[argument.name].shape, strict=True))
    return sizes
