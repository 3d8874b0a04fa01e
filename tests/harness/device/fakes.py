"""A device and a sandbox that this machine has: plans are invented, and a call computes what PyTorch computes."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from harness.backends.triton.launcher.binary import Binary
from harness.backends.triton.launcher.client import DeviceFault, PlanRefused
from harness.backends.triton.launcher.requests import CallOutcome, DeviceInfo, RoundRequest, RoundResult
from harness.domain.digest import digest_bytes
from harness.domain.plan import LaunchPlan
from harness.evaluation.buffers import dtype_of
from harness.evaluation.ports import CandidateFault, Fault, Lent, LoadReport
from harness.operators.base import OperatorSpec
from harness.operators.implementation import Tensors, load_implementation

IR = "module {}"
INFO = DeviceInfo("NVIDIA H200", "13.0", 90, 132, 62_914_560, 150_000_000_000, 232_448, "00" * 16)
Behaviour = Callable[["FakeDevice", Tensors, Tensors, int | None], None]
"""What kernels do to inputs and (poisoned) outputs, both views of lent memory, with one launch left out or none."""


@dataclass
class FakePlanner:
    """Stands in for a ``triton-plan`` sandbox: any source has ``launches`` launches; attributes travel as constants."""

    launches: int = 1
    refusals: list[dict[str, Any]] = field(default_factory=list)
    scratch: int = 0
    fault: Fault | None = None
    forged: bool = False
    source: str = ""
    asked: int = 0
    closed: bool = False

    def load(self, source: str) -> LoadReport:
        """Remember the source."""
        self.source = source
        return LoadReport(seconds=0.0)

    def ask(self, document: dict[str, Any], *, deadline_s: float | None = None) -> dict[str, Any]:
        """A plan for the arguments asked about."""
        self.asked += 1
        if self.fault is not None:
            raise CandidateFault(self.fault)
        return {"plan": plan_document(document["arguments"], document["attributes"], launches=self.launches,
                                      refusals=self.refusals, scratch=self.scratch, forged=self.forged)}

    def close(self) -> None:
        """Forget the candidate."""
        self.closed = True


def plan_document(
    arguments: Sequence[Mapping[str, Any]], attributes: Mapping[str, float], *, launches: int = 1,
    refusals: Sequence[dict[str, Any]] = (), scratch: int = 0, forged: bool = False,
) -> dict[str, Any]:
    """A valid plan document with ``launches`` launches over all arguments and ``scratch`` bytes of scratch."""
    buffers = []
    for number, item in enumerate(arguments):
        width = dtype_of(item["dtype"]).itemsize
        span = 1 + sum((n - 1) * s for n, s in zip(item["shape"], item["strides"], strict=True))
        span = 0 if 0 in item["shape"] else span
        buffers.append({
            "id": number, "kind": item["kind"], "bytes": (item["offset"] + span) * width, "align": 512,
            "shape": list(item["shape"]), "strides": list(item["strides"]), "dtype": item["dtype"],
            "offset": item["offset"] * width,
        })
    if scratch:
        buffers.append({"id": len(buffers), "kind": "scratch", "bytes": scratch, "align": 512, "shape": [scratch],
                        "strides": [1], "dtype": "uint8", "offset": 0})
    if forged:
        buffers[0]["bytes"] += 1 << 20
    pointers = [{"buffer": number, "offset": 0} for number in range(len(arguments))]
    launch = {
        "function": "_kernel", "ir": digest_bytes(IR.encode()), "kind": "ttir", "options": {},
        "signature": {item["name"]: f"*{item['dtype']}" for item in arguments},
        "constants": dict(attributes), "divisible": {}, "grid": [1, 1, 1], "num_ctas": 1, "cooperative": False,
        "pdl": False,
        "args": [*pointers, {"null": True}, {"null": True}],
    }
    return {
        "version": 1, "target": "cuda:90", "compiler": "triton 3.7.1", "second_call": "same", "buffers": buffers,
        "steps": [{"launch": {**launch, "function": f"_kernel_{number}"}} for number in range(launches)],
        "refusals": list(refusals), "irs": {digest_bytes(IR.encode()): IR},
    }


@dataclass
class FakePlanners:
    """An opener of sandbox mode ``triton-plan``."""

    settings: dict[str, Any] = field(default_factory=dict)
    isolation: int = 2
    proved: tuple[str, ...] = ("landlock",)
    opened: list[FakePlanner] = field(default_factory=list)

    def open(self, **_: Any) -> FakePlanner:
        """One more process."""
        self.opened.append(FakePlanner(**self.settings))
        return self.opened[-1]


def binaries_without_compiler(plans: list[LaunchPlan], *_: Any, **__: Any) -> list[tuple[Binary, ...]]:
    """In place of ``compiler.binaries.binaries_of``."""
    return [tuple(Binary("_kernel", b"", 4, 1, 0) for step in plan.steps if "launch" in step) for plan in plans]


def honest(device: FakeDevice, inputs: Tensors, outputs: Tensors, drop: int | None) -> None:
    """Fill the outputs as an honest kernel does; without its last launch nothing is written."""
    if drop == device.launches - 1:
        return
    made = load_implementation(device.spec).honest(inputs, device.attributes)
    for name, values in made.items():
        outputs[name].copy_(values)


@dataclass
class FakeDevice:
    """Implements ``client.Device`` on the judge's own memory. ``behaviour`` is the candidate."""

    spec: OperatorSpec
    behaviour: Behaviour = honest
    well: bool = True
    refuses: PlanRefused | None = None
    info: DeviceInfo = INFO
    calls: int = 0
    closed: bool = False
    attributes: dict[str, float] = field(default_factory=dict)
    launches: int = 1
    _plans: list[LaunchPlan] = field(default_factory=list)

    @property
    def loaded(self) -> int:
        """Plans that it was given."""
        return len(self._plans)

    def load(self, plan: LaunchPlan, binaries: Sequence[Binary]) -> int:
        """Keep the plan."""
        assert not self.closed
        if self.refuses is not None:
            raise self.refuses
        self._plans.append(plan)
        return len(self._plans) - 1

    def call(
        self, handle: int, lent: Sequence[Lent], *, drop: int | None = None, timeout_s: float = 10.0
    ) -> CallOutcome:
        """Check the arrays as the launcher does, then let ``behaviour`` work on them."""
        assert not self.closed
        self.calls += 1
        plan = self._plans[handle]
        for buffer, item in zip(plan.buffers, lent, strict=False):
            if (buffer.shape, buffer.strides, buffer.dtype) != (item.shape, item.strides, item.dtype):
                raise PlanRefused("arguments", f"'{item.name}' is not the one of the recording")
            assert item.offset % 512 == buffer.offset % 512
        steps = [step["launch"] for step in plan.steps if "launch" in step]
        self.attributes, self.launches = self.attributes_of(plan), len(steps)
        inputs: Tensors = {}
        outputs: Tensors = {}
        for item in lent:
            tensor = view_of(item, writable=item.kind == "output")
            (inputs if item.kind == "input" else outputs)[item.name] = tensor
        before = {name: values.clone() for name, values in inputs.items()}
        self.behaviour(self, inputs, outputs, drop)
        changed = [name for name, values in inputs.items() if not same_bits(values, before[name])]
        return CallOutcome(tuple(changed), 1e-3)

    def attributes_of(self, plan: LaunchPlan) -> dict[str, float]:
        """The attributes of the recorded call, which invented plans carry as constants."""
        return dict(next(step["launch"] for step in plan.steps if "launch" in step)["constants"])

    def round(self, request: RoundRequest, *, timeout_s: float = 30.0) -> RoundResult:
        """This device has no clock."""
        raise DeviceFault("launch_failed", "there is no clock here")

    def healthy(self) -> bool:
        """Whether the device still computes."""
        return self.well

    def roofs(self) -> Mapping[str, float]:
        """Rates of no device in particular."""
        return {"copy": 4e12, "read": 4.2e12}

    def close(self) -> None:
        """End."""
        self.closed = True


@dataclass
class FakeHost:
    """Starts devices of one kind and remembers them: ``Run.open_device``."""

    spec: OperatorSpec
    behaviour: Behaviour = honest
    settings: dict[str, Any] = field(default_factory=dict)
    devices: list[FakeDevice] = field(default_factory=list)

    def __call__(self, **_: Any) -> FakeDevice:
        """One more launcher."""
        self.devices.append(FakeDevice(self.spec, self.behaviour, **self.settings))
        return self.devices[-1]

    @property
    def calls(self) -> int:
        """Calls on all devices so far."""
        return sum(device.calls for device in self.devices)


def view_of(item: Lent, *, writable: bool) -> torch.Tensor:
    """The lent array; a copy-on-write view where the memory is sealed."""
    access = mmap.MAP_SHARED if writable else mmap.MAP_PRIVATE
    memory = mmap.mmap(item.fd, item.nbytes, flags=access, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    dtype = dtype_of(item.dtype)
    flat = torch.frombuffer(memory, dtype=dtype, count=(item.nbytes - item.offset % dtype.itemsize) // dtype.itemsize,
                            offset=item.offset % dtype.itemsize)
    return flat.as_strided(item.shape, item.strides, item.offset // dtype.itemsize)


def same_bits(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Equal bit for bit, NaN included."""
    return torch.equal(left.contiguous().view(torch.uint8), right.contiguous().view(torch.uint8))
