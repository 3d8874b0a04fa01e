"""A launcher that computes on the CPU and invents its times from a seeded model: what the device clock is tested on.

A plan is recognised by its ``compiler`` field, which names a kernel of the model. Contents are renewed element by
element from the request alone, so that the judge's own arithmetic is tested against another one's.
"""

from __future__ import annotations

import math
import mmap
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy
import torch

from harness.backends.triton.launcher.client import DeviceFault, PlanRefused
from harness.backends.triton.launcher.requests import Apart, DeviceInfo, RoundRequest, RoundResult, Sweep
from harness.domain.plan import LaunchPlan
from harness.domain.vocabulary import Stage
from harness.evaluation.buffers import DTYPES
from harness.evaluation.poison import output_poison
from harness.evaluation.run import Place
from harness.evaluation.timing.device.bench import Bench
from harness.evaluation.timing.device.contents import Factors
from harness.evaluation.timing.device.session import Kernel
from harness.evaluation.timing.device.shape import prepare
from harness.evaluation.timing.stages import line_up_of
from harness.hardware.nvml import Reading
from harness.operators.implementation import load_implementation
from harness.operators.registry import get

L2 = 1 << 20
INFO = DeviceInfo(name="NVIDIA H200", driver="13.0", capability=90, multiprocessors=132, l2_bytes=L2,
                  memory_bytes=1 << 32, shared_optin=232_448, uuid="GPU-00000000-0000-0000-0000-000000000000")
CALM = Reading(sm_mhz=1980, memory_mhz=3201, power_w=300.0, celsius=40, reasons=0, processes=())


@dataclass
class Model:
    """How the device behaves. Times in microseconds of a cold call by kernel name; noise as standard deviations of
    logarithms: per sample, and per round and kernel (placement). The rest are ways to be caught."""

    us: dict[str, float]
    sample_noise: float = 0.01
    round_noise: float = 0.003
    hot_share: float = 0.8
    swing: dict[str, tuple[float, ...]] = field(default_factory=dict)  # factors of a kernel's time, round by round
    mhz: float = 1980.0
    mhz_of: dict[str, float] = field(default_factory=dict)
    judged_share: float = 1.0  # of the event time that the judge's slope shows
    wrong: str = ""  # a kernel whose outputs are wrong when it is timed
    late: str = ""  # a kernel whose outputs change afterwards
    partial: str = ""  # a kernel that leaves 4 % of the rows out, none of which is ever kept
    instead: str = "poison"  # what lies there then: poison, zeros, or "neighbour", the row before
    copies_differ: bool = False  # whether a second copy of it leaves out other rows
    off: str = ""  # a kernel whose compared outputs are wrong in one element
    rounded: bool = False  # compared outputs are rounded differently by every side
    writes: str = ""  # a kernel that changes an input
    strays: str = ""  # a kernel that writes outside its outputs
    faulty: dict[str, str] = field(default_factory=dict)  # kernel to the fault it ends rounds with
    faults: int = 1 << 30  # rounds that it ends so
    refused: dict[str, str] = field(default_factory=dict)  # kernel to the code its plan is refused with
    broken_inputs: bool = False
    senseless: bool = False
    rates: dict[str, float] = field(default_factory=lambda: {"copy": 4.2e12, "read": 4.4e12})


class ModelDevice:
    """Implements ``launcher.client.Device``."""

    def __init__(self, spec: Any, model: Model, seed: int = 1,
                 name_of: Callable[[LaunchPlan], str] = lambda recorded: recorded.compiler) -> None:
        self.info, self.model, self._name_of = INFO, model, name_of
        self._spec, self._random = spec, random.Random(seed)
        self._kernels: list[str] = []
        self.requests: list[RoundRequest] = []
        self.asked: Counter[str] = Counter()

    def load(self, plan: LaunchPlan, binaries: Any) -> int:
        name = self._name_of(plan)
        if name in self.model.refused:
            raise PlanRefused(self.model.refused[name], "it cannot run")
        self._kernels.append(name)
        return len(self._kernels) - 1

    def round(self, request: RoundRequest, *, timeout_s: float = 30.0) -> RoundResult:
        self.requests.append(request)
        sides = {side: self._kernels[handle] for side, handle in request.sides.items()}
        for kernel in sides.values():
            if kernel in self.model.faulty and self.model.faults > 0:
                self.model.faults -= 1
                raise DeviceFault(self.model.faulty[kernel], "simulated")
        level = {side: self._level(kernel, request) for side, kernel in sides.items()}
        us = {side: tuple(self._sample(level[side], sweep) for sweep in request.sweeps) for side in sides}
        if self.model.senseless:
            us = {side: (math.nan, *values[1:]) for side, values in us.items()}
        slope = {side: self._points(request, level[side]) for side in sides} if request.slope else {}
        late = tuple((side, 1) for side, kernel in sides.items() if kernel == self.model.late)
        written = tuple((side, 2) for side, kernel in sides.items() if kernel == self.model.writes)
        return RoundResult(
            us=us, late=late, kept=tuple(self._kept(request, sweep, sides) for sweep in request.sweeps), slope=slope,
            judged={side: tuple((count, seconds * self.model.judged_share) for count, seconds in points)
                    for side, points in slope.items()},
            empty_us=2.1, mhz=tuple(self._clock(sides[sweep.order[0]]) for sweep in request.sweeps),
            apart=self._apart(request, sides), written=written,
            strayed=tuple((side, 1) for side, kernel in sides.items() if kernel == self.model.strays),
        )

    def _apart(self, request: RoundRequest, sides: dict[str, str]) -> tuple[Apart, ...]:
        """Outputs compared whole, where the model has anything that could be apart."""
        if request.compared is None or not (self.model.partial or self.model.off or self.model.rounded):
            return ()
        self.asked["compared"] += 1
        found = []
        for number, sweep in enumerate(request.sweeps):
            if not sweep.flush or not set(request.compared) <= set(sweep.order):
                continue
            for slot, start in zip(sweep.slots, sweep.starts, strict=True):
                mine, other = (self._left(request, sweep, start, side, sides[side]) for side in request.compared)
                for name in mine:
                    one = _apart(mine[name].double().flatten(), other[name].double().flatten(), request.near)
                    if one is not None:
                        found.append(Apart(number, name, slot, *one))
        return tuple(found)

    def _left(self, request: RoundRequest, sweep: Sweep, start: int, side: str, kernel: str) -> dict[str, torch.Tensor]:
        """What a side left of one slot, whole."""
        arrays, implementation = self._contents(request, start), load_implementation(self._spec)
        outputs = implementation.honest(arrays, dict(self._attributes))
        if self.model.rounded and side == request.compared[1]:
            exact = implementation.reference(arrays, dict(self._attributes))
            outputs = {name: exact[name].to(value.dtype) for name, value in outputs.items()}
        for value in outputs.values():
            if kernel == self.model.off:
                value.view(-1)[-5] += 1
            rows = value.shape[0]
            first = start % (rows - rows // 25 + 1)  # hashed from the contents
            if kernel == self.model.partial and not (self.model.copies_differ and side == request.compared[1]):
                self._leave_out(value, range(first, first + rows // 25), sweep.poison)
        return outputs

    def _leave_out(self, value: torch.Tensor, rows: range, poison: int) -> None:
        for row in rows:
            if self.model.instead == "neighbour":
                value[row] = value[row - 1]
            elif self.model.instead == "zeros":
                value[row] = 0.0
            else:
                value[row : row + 1].view(torch.int16).fill_(output_poison("bfloat16", poison))

    def _level(self, kernel: str, request: RoundRequest) -> float:
        swing = self.model.swing.get(kernel, (1.0,))
        number = sum(one.arrays[0].fd == request.arrays[0].fd for one in self.requests) - 1
        return (self.model.us[kernel] * swing[number % len(swing)]
                * math.exp(self._random.gauss(0, self.model.round_noise)))

    def _clock(self, kernel: str) -> float:
        return self.model.mhz_of.get(kernel, self.model.mhz) * math.exp(self._random.gauss(0, 0.001))

    def _sample(self, level: float, sweep: Sweep) -> float:
        slowed = 1.3 if self._random.random() < 0.02 else 1.0
        share = 1.0 if sweep.flush else self.model.hot_share
        return level * share * slowed * math.exp(self._random.gauss(0, self.model.sample_noise))

    def _points(self, request: RoundRequest, level: float) -> tuple[tuple[int, float], ...]:
        return tuple((times * request.slots, 1e-4 + times * request.slots * level * 1e-6)
                     for times in (request.slope, 4 * request.slope))

    def _kept(self, request: RoundRequest, sweep: Sweep, sides: dict[str, str]) -> tuple[bytes, ...]:
        if not sweep.keeps:
            return ()
        slot = sweep.keeps[0].slot
        arrays = self._contents(request, sweep.starts[sweep.slots.index(slot)])
        outputs = load_implementation(self._spec).honest(arrays, dict(self._attributes))
        if sides[sweep.kept_side] == self.model.wrong:
            outputs = {name: torch.where(value.isfinite(), value * 1.5 + 1, value).to(value.dtype)
                       for name, value in outputs.items()}
        held = {**arrays, **outputs}
        if self.model.broken_inputs:
            held |= {name: arrays[name] * 0.5 for name in request.renewed}
        found = []
        for keep in sweep.keeps:
            data = held[keep.output].contiguous().view(-1).view(torch.uint8)
            found.append(data[keep.offset : keep.offset + keep.count].numpy().tobytes())
        return tuple(found)

    def _contents(self, request: RoundRequest, start: int) -> dict[str, torch.Tensor]:
        table = torch.frombuffer(bytearray(_read(request.factors, 4 * request.factor_count)), dtype=torch.float32)
        arrays = {}
        for item in (one for one in request.arrays if one.kind == "input"):
            count = math.prod(item.shape)
            raw = bytearray(_read(item.fd, item.nbytes))
            base = torch.frombuffer(raw, dtype=DTYPES[item.dtype], count=count, offset=item.offset)
            if item.name in request.renewed:
                many = request.factor_count
                start %= many - count + 1 if many > count else many
                index = torch.from_numpy(numpy.arange(start, start + count) % many)
                base = (base.float() * table[index]).to(base.dtype)
                start += count
            arrays[item.name] = base.view(item.shape)
        return arrays

    _attributes: dict[str, float] = {}

    def with_attributes(self, attributes: dict[str, float]) -> ModelDevice:
        self._attributes = attributes
        return self

    def roofs(self) -> dict[str, float]:
        self.asked["roofs"] += 1
        return self.model.rates

    def healthy(self) -> bool:
        return True

    def close(self) -> None:
        self.asked["close"] += 1


def _read(fd: int, count: int) -> bytes:
    with mmap.mmap(fd, count, prot=mmap.PROT_READ) as memory:
        return memory[:]


def _apart(mine: torch.Tensor, other: torch.Tensor, near: tuple[float, float]) -> tuple[int, int, float, float] | None:
    """How many elements are apart, the first one, and both values there."""
    allowed = near[0] * torch.maximum(mine.abs(), other.abs()) + near[1]
    apart = torch.nonzero(((mine - other).abs() > allowed) | (mine.isnan() != other.isnan())).flatten()
    if not len(apart):
        return None
    first = int(apart[0])
    return len(apart), first, float(mine[first]), float(other[first])


def plan(kernel: str) -> LaunchPlan:
    """A plan that the model knows as ``kernel``."""
    return LaunchPlan(target="cuda:90", compiler=kernel, second_call="same", buffers=(), steps=())


def run_of(sources: dict[str, str], model: Model, *, points: Any, operator: str = "softmax", limits: Any = None,
           seed: int = 1, looks: Sequence[Reading | None] = (CALM,), native: Any = None) -> Any:
    """A run whose plan stage is over: ``sources`` are the texts of candidate and opponents by role; every text is the
    name of a kernel of the model. Recording and compiling are left out, everything behind them is real. ``looks`` are
    what the card's telemetry reads, the last one for ever."""
    from harness.domain.digest import digest_bytes
    from harness.domain.goal import Limits
    from harness.domain.request import Opponent
    from harness.domain.vocabulary import Backend, Role
    from tests.harness.judge.evaluations import make_run

    spec = get(operator)
    run = make_run(spec, Backend.TRITON, sources["candidate"], None, limits or Limits())
    against = tuple(Opponent(Role(role), digest_bytes(text.encode()), text)
                    for role, text in sources.items() if role != "candidate")
    run.request = replace(run.request, against=against)
    run.device, run.seed, run.clocks["native"] = "nvidia-h200", 77, native
    assert run.place is Place.DEVICE
    device = ModelDevice(spec, model, seed)
    run.open_device = lambda *_, **__: device
    draw = random.Random(seed)
    dtype = run.workload.dtypes[Backend.TRITON]
    shapes = prepare(spec, points, dtype=dtype, regimes=run.workload.regimes, seed=run.seed, source=draw,
                     stage="clock")
    line_up = line_up_of(run)
    kernels = {side: Kernel({point.label: (plan(text), ()) for point in points}, 0.5)
               for side, text in line_up.sources.items()}
    seen = list(looks)
    run.bench = Bench(line_up, kernels, shapes, Factors(run.seed, "clock"), draw,
                      look=lambda uuid: seen.pop(0) if len(seen) > 1 else seen[0], pause=lambda seconds: None)
    device.with_attributes(next(iter(shapes.values())).attributes)
    return SimpleNamespace(run=run, device=device, shapes=shapes)


def timed(sources: dict[str, str], model: Model, **options: Any) -> Any:
    """``run_of``, then both stages; ``refused`` holds what ended it."""
    from harness.evaluation.run import Refused
    from harness.evaluation.timing.device.stages import benchmark, recheck

    found = run_of(sources, model, **options)
    found.refused = None
    for stage, work in ((Stage.BENCHMARK, benchmark), (Stage.RECHECK, recheck)):
        found.run.stage = stage
        try:
            work(found.run)
        except Refused as refused:
            found.refused = refused
            break
    return found
