"""Where libraries are measured: a GPU by events around captured graphs, or the clock's cores by the wall clock."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from harness.evaluation.sandbox import tree
from harness.evaluation.timing.device.shape import BATCH_US, MOST_BATCH, MOST_SLOTS
from harness.evaluation.timing.session import TARGET_BATCH_S

SPIN_CYCLES = 200_000
"""What the device is kept busy with while the host enqueues a sample: about 0.1 ms, so that no launch is waited for."""
SPIN_CYCLES_CALLED = 2_000_000
"""The same where the host calls the library instead of replaying a graph."""
FILL = 2.5e38
"""A huge finite value; bfloat16 and float32 hold it, and no result is it."""
CPU_SLOTS = 32

Outputs = dict[str, torch.Tensor]
Calls = Sequence[Callable[[], Outputs]]


class Prepared(Protocol):
    """Calls of one side on one stretch of the ring, ready to be timed."""

    def spoil(self) -> None:
        """Overwrite what the calls left, so that an earlier answer cannot pass for a new one."""
        ...

    def sample(self) -> float:
        """Microseconds of all calls together."""
        ...

    def last(self) -> Outputs:
        """What the last call left."""
        ...


class Place(Protocol):
    """A device with its clock."""

    device: str
    cache_bytes: int
    memory_bytes: int
    most_slots: int

    def batch(self, us: float) -> int:
        """Calls of a sample, for calls of ``us`` microseconds."""
        ...

    def common(self) -> Any:
        """What the stretches of one side share."""
        ...

    def prepare(self, calls: Calls, *, graph: bool, shared: Any) -> Prepared:
        """Ready ``calls``; ``shared`` comes from ``common``."""
        ...

    def rest(self) -> None:
        """Give memory of the last round back."""
        ...


class Gpu:
    """The first CUDA device that this process sees."""

    device, most_slots = "cuda", MOST_SLOTS

    def __init__(self) -> None:
        facts = torch.cuda.get_device_properties(0)
        self.cache_bytes, self.memory_bytes = int(facts.L2_cache_size), int(facts.total_memory)
        self.flush, self.clean = (torch.zeros(2 * self.cache_bytes // 4, dtype=torch.int32, device="cuda")
                                  for _ in range(2))
        self.total = torch.empty((), dtype=torch.int64, device="cuda")
        self.start, self.end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.aside = torch.cuda.Stream()

    def batch(self, us: float) -> int:
        """As for our own kernels: about 100 us."""
        return max(1, min(MOST_BATCH, math.ceil(BATCH_US / max(us, 1e-3))))

    def common(self) -> Any:
        """One memory pool for all graphs of a side, which never run at the same time, and whether it was called on the
        stream that captures."""
        return Pool(torch.cuda.graph_pool_handle())

    def prepare(self, calls: Calls, *, graph: bool, shared: Any) -> Prepared:
        """See ``Place``."""
        return Captured(self, calls, shared) if graph else Called(self, calls)

    def rest(self) -> None:
        """See ``Place``."""
        torch.cuda.synchronize()
        torch.cuda.empty_cache()

    def read_clean(self) -> None:
        """Fill the caches with what is not written, so that nothing has to be written back under the clock."""
        torch.sum(self.clean, dim=0, dtype=torch.int64, out=self.total)

    def elapsed(self, work: Callable[[], Any], spin: int) -> tuple[float, Any]:
        """Microseconds between events around ``work``, enqueued while the device spins and flushes its caches: written
        full and then read full of something else, as in a launcher round."""
        with contextlib.suppress(AttributeError):  # private: without it, a launch may show in short samples
            torch.cuda._sleep(spin)
        self.flush.zero_()
        self.read_clean()
        self.start.record()
        result = work()
        self.end.record()
        self.end.synchronize()
        return float(self.start.elapsed_time(self.end)) * 1e3, result


@dataclass
class Pool:
    """What the graphs of one side share."""

    handle: Any
    called: bool = False


class Captured:
    """Calls captured in one CUDA graph; each keeps its outputs, so that every call writes memory of its own."""

    def __init__(self, gpu: Gpu, calls: Calls, pool: Pool) -> None:
        self._gpu, self._graph = gpu, torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.stream(gpu.aside):
            if not pool.called:  # a library makes handles and workspaces for a stream on its first call there
                calls[0]()
                gpu.aside.synchronize()
                pool.called = True
            # Not the context manager of torch, which collects garbage before every capture.
            self._graph.capture_begin(pool=pool.handle, capture_error_mode="thread_local")
            try:
                self._left = [call() for call in calls]
            finally:
                self._graph.capture_end()
        torch.cuda.synchronize()

    def spoil(self) -> None:
        """See ``Prepared``."""
        fill(self._left)

    def sample(self) -> float:
        """See ``Prepared``."""
        return self._gpu.elapsed(self._graph.replay, SPIN_CYCLES)[0]

    def last(self) -> Outputs:
        """See ``Prepared``."""
        return self._left[-1]


class Called:
    """Calls from the host, for libraries that wait for the device themselves."""

    def __init__(self, gpu: Gpu, calls: Calls) -> None:
        self._gpu, self._calls = gpu, calls
        self._left: list[Outputs] = []

    def spoil(self) -> None:
        """See ``Prepared``."""
        fill(self._left)
        self._left = []

    def sample(self) -> float:
        """See ``Prepared``."""
        us, self._left = self._gpu.elapsed(lambda: [call() for call in self._calls], SPIN_CYCLES_CALLED)
        return us

    def last(self) -> Outputs:
        """See ``Prepared``."""
        return self._left[-1]


class Cpu:
    """The cores of the clock, to which this process is pinned. As in the clock of our own kernels, the ring alone keeps
    inputs out of the caches."""

    device, most_slots = "cpu", CPU_SLOTS

    def __init__(self, cache_bytes: int, memory_bytes: int, cores: Sequence[int] = ()) -> None:
        self.cache_bytes, self.memory_bytes, self.cores = cache_bytes, memory_bytes, set(cores)

    def batch(self, us: float) -> int:
        """As for our own kernels: about 5 ms."""
        return max(1, round(TARGET_BATCH_S * 1e6 / max(us, 1.0)))

    def common(self) -> Any:
        """Nothing is shared."""
        return None

    def prepare(self, calls: Calls, *, graph: bool, shared: Any) -> Prepared:
        """See ``Place``; there are no graphs."""
        return OnHost(calls, self.cores)

    def rest(self) -> None:
        """Nothing is kept."""


class OnHost:
    """Calls by the wall clock, ahead of ordinary work on ``cores``, as timed kernels of ours are."""

    def __init__(self, calls: Calls, cores: set[int]) -> None:
        self._calls, self._cores = calls, cores
        self._left: Outputs = {}

    def spoil(self) -> None:
        """See ``Prepared``."""
        fill([self._left])

    def sample(self) -> float:
        """See ``Prepared``."""
        left: Outputs = {}
        if self._cores:
            tree.pin(os.getpid(), self._cores)
        try:
            began = time.perf_counter()
            for call in self._calls:
                left = call()
            us = (time.perf_counter() - began) * 1e6
        finally:
            tree.ordinary(0)
        self._left = left
        return us

    def last(self) -> Outputs:
        """See ``Prepared``."""
        return self._left


def fill(outputs: Sequence[Outputs]) -> None:
    """Overwrite outputs with a value that no call computes."""
    for left in outputs:
        for values in left.values():
            values.fill_(FILL if values.dtype in (torch.float32, torch.bfloat16) else 7)
