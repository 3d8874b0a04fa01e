"""A worker that computes in torch on the lent memory, for half precision too; it stands for a device's plans."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from harness.evaluation.buffers import dtype_of
from harness.evaluation.ports import Announced, CallReport, Lent, LoadReport
from harness.operators.base import OperatorSpec
from harness.operators.implementation import load_implementation

Kernel = Callable[[dict[str, torch.Tensor], dict[str, float]], dict[str, torch.Tensor]]


@dataclass
class TorchWorker:
    """Implements ``ports.PlanReplayer``; ``kernel`` computes outputs by name, the honest implementation by default."""

    spec: OperatorSpec
    kernel: Kernel | None = None
    announced: list[Announced] = field(default_factory=list)
    called: list[dict[str, int]] = field(default_factory=list)
    closed: bool = False

    def load(self, source: str) -> LoadReport:
        """Nothing to import."""
        return LoadReport(seconds=0.0)

    def prepare(self, calls: Sequence[Announced]) -> None:
        """Remember what was announced."""
        self.announced += calls

    def call(self, lent: Sequence[Lent], attributes: Mapping[str, float]) -> CallReport:
        """Compute the outputs from the inputs as they are lent."""
        arrays = {item.name: _view(item) for item in lent}
        inputs = {item.name: arrays[item.name].clone() for item in lent if item.kind == "input"}
        kernel = self.kernel or load_implementation(self.spec).honest
        for name, value in kernel(inputs, dict(attributes)).items():
            arrays[name].copy_(value)
        self.called.append({f"{item.name}[0]": item.shape[0] for item in lent})
        return CallReport(seconds=0.0)

    def rest(self) -> None:
        """No device is held."""

    def close(self) -> None:
        """Nothing is kept."""
        self.closed = True


@dataclass
class TorchOpener:
    """Opens torch workers and remembers them."""

    spec: OperatorSpec
    kernel: Kernel | None = None
    workers: list[TorchWorker] = field(default_factory=list)

    def open(self, **_: Any) -> TorchWorker:
        """A fresh worker."""
        self.workers.append(TorchWorker(self.spec, self.kernel))
        return self.workers[-1]


def _view(item: Lent) -> torch.Tensor:
    access = mmap.ACCESS_COPY if item.kind == "input" else mmap.ACCESS_WRITE
    memory = mmap.mmap(item.fd, item.nbytes, access=access)
    flat = torch.frombuffer(memory, dtype=torch.uint8)
    dtype = dtype_of(item.dtype)
    size = dtype.itemsize
    whole = flat[: len(flat) // size * size].view(dtype)
    return whole.as_strided(item.shape, item.strides, item.offset // size)
