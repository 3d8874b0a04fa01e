"""One shape's memory in the libraries' process: slots whose contents are new in every sample.

The rules are the clock's of our own kernels: a ring of at least three times the cache and four slots, contents that are
first contents times factors drawn anew, constants restored, everything placed afresh in every round.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from harness.domain.vocabulary import Backend
from harness.evaluation.buffers import dtype_of
from harness.evaluation.judge.inputs import all_attributes
from harness.evaluation.judge.large import make_large_inputs
from harness.evaluation.timing.device.contents import Starts, Stretch
from harness.evaluation.timing.device.shape import CACHES, LEAST_SLOTS, MEMORY_SHARE, MOST_SLOTS
from harness.operators.base import OperatorSpec, ShapePoint
from harness.operators.implementation import Tensors

CHUNK = 1 << 26
"""Elements renewed at a time: their float32 products are a quarter of a gigabyte."""


@dataclass
class Contents:
    """First contents of one shape in host memory, and the factors' starts that were drawn for it."""

    spec: OperatorSpec
    point: ShapePoint
    dtype: str
    attributes: dict[str, float]
    inputs: Tensors
    starts: Starts
    renewed: tuple[str, ...]

    @property
    def slot_bytes(self) -> int:
        """Bytes of one slot: renewed inputs and outputs."""
        sizes = [_bytes(self.inputs[name].dtype, self.inputs[name].shape) for name in self.renewed]
        sizes += [_bytes(dtype_of(output.dtype or self.dtype), [self.point.dims[dim] for dim in output.dims])
                  for output in self.spec.outputs]
        return max(1, sum(sizes))

    def slots(self, cache_bytes: int, memory_bytes: int, batch: int, most: int = MOST_SLOTS) -> int:
        """Slots of a ring on a device of these sizes."""
        wanted = max(LEAST_SLOTS, -(-CACHES * cache_bytes // self.slot_bytes), batch)
        return max(1, min(wanted, most, int(MEMORY_SHARE * memory_bytes) // self.slot_bytes))

    def stretches(self, start: int) -> dict[str, Stretch]:
        """Where every renewed input's factors begin for a slot whose start was drawn as ``start``."""
        return dict(zip(self.renewed, self.starts.stretches(start), strict=True))


def contents_of(spec: OperatorSpec, point: ShapePoint, backend: Backend, workload: str, seed: int,
                source: random.Random, clean: Callable[[Tensors], Tensors] | None = None) -> Contents:
    """Contents of ``point`` in the workload's value regimes; ``clean`` makes them such that libraries can be asked."""
    chosen = spec.workloads[workload]
    dtype, attributes = chosen.dtypes[backend], all_attributes(spec, point.attributes)
    regimes = point.regimes or chosen.regimes
    inputs = make_large_inputs(spec, point.dims, regimes, attributes, dtype, seed, "peers", point.label)
    if clean is not None:
        inputs = clean(inputs)
    renewed = tuple(argument.name for argument in spec.inputs
                    if argument.per_call and inputs[argument.name].dtype.is_floating_point)
    starts = Starts([inputs[name].numel() for name in renewed], source)
    return Contents(spec, point, dtype, attributes, inputs, starts, renewed)


class Ring:
    """Slots on a device, placed now. Every slot has its own renewed inputs; the others are shared and restored."""

    def __init__(self, contents: Contents, first: Tensors, table: torch.Tensor, slots: int, spacer: int) -> None:
        """``first``: the first contents on the device, as is the ``table`` of factors; ``spacer``: bytes allocated
        beforehand, so that rounds differ in placement."""
        self._contents, self._first, self._table = contents, first, table
        self._spacer = torch.empty(max(1, spacer), dtype=torch.uint8, device=table.device)
        fixed = {name: values.clone() for name, values in self._first.items() if name not in contents.renewed}
        self.slots: list[Tensors] = [
            {name: fixed[name] if name in fixed else torch.empty_like(values) for name, values in self._first.items()}
            for _ in range(slots)]

    def renew(self, numbers: Sequence[int], starts: Sequence[int]) -> None:
        """New contents for the slots called ``numbers``; what is shared gets its first contents back."""
        for number, start in zip(numbers, starts, strict=True):
            slot = self.slots[number]
            for name, values in self._first.items():
                if name not in self._contents.renewed:
                    slot[name].copy_(values)
            for name, stretch in self._contents.stretches(start).items():
                renew(slot[name].view(-1), self._first[name].view(-1), self._table, stretch)


def renew(target: torch.Tensor, first: torch.Tensor, table: torch.Tensor, stretch: Stretch) -> None:
    """``first`` times the factors, in float32 and rounded once, part by part; all flat."""
    for begin in range(0, len(first), CHUNK):
        end = min(begin + CHUNK, len(first))
        target[begin:end] = first[begin:end].float() * stretch.factors(table, begin, end)


def rows_of(contents: Contents, rows: range, dim: str | None, start: int, table: torch.Tensor
            ) -> tuple[dict[str, int], Tensors]:
    """Dimensions and inputs of some ``rows`` as the slot whose start was ``start`` held them, on the host."""
    stretches, inputs = contents.stretches(start), {}
    for argument in contents.spec.inputs:
        values = contents.inputs[argument.name]
        first, last = (rows.start, rows.stop) if argument.dims[0] == dim else (0, values.shape[0])
        each = values[0].numel()
        part = values[first:last]
        if argument.name in stretches:
            flat, factors = part.reshape(-1), stretches[argument.name].factors(table, first * each, last * each)
            part = (flat.float() * factors).to(values.dtype).view(part.shape)
        inputs[argument.name] = part
    dims: Mapping[str, int] = contents.point.dims
    return {**dims, dim: len(rows)} if dim else dict(dims), inputs


def _bytes(dtype: torch.dtype, shape: Sequence[int]) -> int:
    return math.prod(shape) * torch.empty(0, dtype=dtype).element_size()
