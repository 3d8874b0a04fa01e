"""A CUDA driver in Python, at the launcher's own seam: memory, streams that run at once, capture, graphs, events.

Kernels of a plan are Python functions ``kernel(memory, addresses, grid)``. Access to unmapped or hidden memory raises
what the real device would: an illegal address.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from harness.backends.triton.launcher.driver import CudaError

UNIT = 2 << 20
ILLEGAL = 700
INVALID = 1
Kernel = Callable[["Memory", list[int], tuple[int, ...]], None]


def number(value: Any) -> int:
    """A ctypes value, a pointer or a plain number as an integer; NULL is 0."""
    return int(getattr(value, "value", value) or 0)


class Memory:
    """Mapped ranges with their access."""

    def __init__(self) -> None:
        self.ranges: dict[int, np.ndarray] = {}
        self.hidden: set[int] = set()

    def find(self, address: int, count: int) -> tuple[int, np.ndarray]:
        """The range that holds ``count`` bytes from ``address``: its start and its bytes."""
        for start, data in self.ranges.items():
            if start <= address and address + count <= start + len(data):
                return start, data
        raise CudaError("a kernel", ILLEGAL, "CUDA_ERROR_ILLEGAL_ADDRESS")

    def view(self, address: int, count: int) -> np.ndarray:
        """Bytes that a kernel reads or writes."""
        start, data = self.find(address, count)
        if start in self.hidden:
            raise CudaError("a kernel", ILLEGAL, "CUDA_ERROR_ILLEGAL_ADDRESS")
        return data[address - start : address - start + count]

    def array(self, address: int, dtype: str, count: int) -> np.ndarray:
        """The same as an array."""
        return self.view(address, count * np.dtype(dtype).itemsize).view(dtype)


class FakeCuda:
    """Implements what the launcher uses of ``driver.Cuda``; ``log`` has what happened, in order."""

    def __init__(self, kernels: dict[str, Kernel], parameters: dict[str, list[int]]) -> None:
        self.kernels, self.parameters = kernels, parameters
        self.memory, self.log = Memory(), []
        self.version, self.device = 13_000, 0
        self.clock = 0
        self._next, self._names, self._capture = UNIT * 1000, {}, None
        self._graphs: dict[int, list[Callable[[], None]]] = {}
        self._events: dict[int, int] = {}

    def __call__(self, name: str, *arguments: Any) -> None:
        code = self.attempt(name, *arguments)
        if code:
            self.fail(name, code)

    def fail(self, name: str, code: int) -> NoReturn:
        """As the driver's words."""
        raise CudaError(name, code, f"error {code}")

    def attempt(self, name: str, *arguments: Any) -> int:
        """Run the entry point; 0 or an error code."""
        return int(getattr(self, "_" + name)(*arguments) or 0)

    def stream(self) -> ctypes.c_void_p:
        """One stream is as good as another."""
        return ctypes.c_void_p(self._handle("stream"))

    def event(self) -> ctypes.c_void_p:
        """An event that has not happened."""
        return ctypes.c_void_p(self._handle("event"))

    def elapsed_us(self, start: ctypes.c_void_p, end: ctypes.c_void_p) -> float:
        """What the clock of this device says: one microsecond per plan kernel."""
        return float(self._events[number(end)] - self._events[number(start)])

    def upload(self, address: int, data: Any, count: int) -> None:
        """Host to device; hidden memory refuses it as the device does."""
        self.memory.view(address, count)[:] = np.frombuffer(ctypes.string_at(data, count), np.uint8)

    def download(self, target: Any, address: int, count: int) -> None:
        """Device to host."""
        ctypes.memmove(target, self.memory.view(address, count).tobytes(), count)

    def fill16(self, address: int, pattern: int, count: int, stream: Any) -> None:
        """A memset."""
        self._do("fill", lambda: self._set(address, np.uint16(pattern), count))

    def wait(self, stream: Any) -> None:
        """Everything ran already."""
        self.log.append(("wait",))

    def attribute(self, which: int) -> int:
        """Enough for a launcher to start."""
        return {38: 4096, 16: 4, 97: 232_448, 75: 9, 76: 0}.get(which, 0)

    def _handle(self, name: str) -> int:
        self._next += UNIT
        self._names[self._next] = name
        return self._next

    def _do(self, kind: str, action: Callable[[], None]) -> None:
        if self._capture is not None:
            self._capture.append(action)
            return
        action()

    def _set(self, address: int, pattern: Any, count: int) -> None:
        self.memory.view(address, count).view(pattern.dtype)[:] = pattern

    def _cuMemGetAllocationGranularity(self, unit: Any, *_: Any) -> None:
        unit._obj.value = UNIT

    def _cuMemCreate(self, handle: Any, size: Any, *_: Any) -> None:
        handle._obj.value = self._handle("memory")

    def _cuMemAddressReserve(self, start: Any, span: Any, *_: Any) -> None:
        self._next += UNIT
        start._obj.value = self._next
        self._next += number(span)

    def _cuMemMap(self, address: Any, size: Any, *_: Any) -> None:
        data = np.random.default_rng(number(address)).integers(0, 256, number(size), np.uint8)
        self.memory.ranges[number(address)] = data

    def _cuMemSetAccess(self, address: Any, size: Any, wanted: Any, count: Any) -> None:
        shown = wanted._obj.flags == 3
        self.log.append(("show" if shown else "hide", number(address)))
        (self.memory.hidden.discard if shown else self.memory.hidden.add)(number(address))

    def _cuMemUnmap(self, address: Any, *_: Any) -> None:
        del self.memory.ranges[number(address)]
        self.memory.hidden.discard(number(address))

    def _cuDeviceTotalMem_v2(self, total: Any, device: Any) -> None:
        total._obj.value = 8 << 30

    def _cuMemRelease(self, *_: Any) -> None: ...

    def _cuMemAddressFree(self, *_: Any) -> None: ...

    def _cuModuleLoadData(self, module: Any, data: Any) -> int:
        text = data.value if isinstance(data, ctypes.c_char_p) else data
        if text == b"not for this device":
            return 209
        module._obj.value = self._handle("module")
        return 0

    def _cuModuleGetFunction(self, function: Any, module: Any, name: bytes) -> None:
        function._obj.value = self._handle(name.decode())

    def _cuFuncGetAttribute(self, value: Any, *_: Any) -> None:
        value._obj.value = 0

    def _cuFuncSetAttribute(self, *_: Any) -> None: ...

    def _cuFuncGetParamInfo(self, function: Any, index: Any, offset: Any, size: Any) -> int:
        sizes = self.parameters.get(self._names[number(function)], [])
        if number(index) >= len(sizes):
            return INVALID
        size._obj.value = sizes[number(index)]
        return 0

    def _cuStreamBeginCapture_v2(self, *_: Any) -> None:
        self._capture = []

    def _cuStreamEndCapture(self, stream: Any, graph: Any) -> None:
        graph._obj.value = self._handle("graph")
        self._graphs[graph._obj.value], self._capture = self._capture or [], None

    def _cuGraphInstantiateWithFlags(self, executable: Any, graph: Any, *_: Any) -> None:
        executable._obj.value = number(graph)

    def _cuGraphDestroy(self, *_: Any) -> None: ...

    def _cuGraphExecDestroy(self, *_: Any) -> None: ...

    def _cuGraphUpload(self, *_: Any) -> None: ...

    def _cuGraphLaunch(self, executable: Any, stream: Any) -> None:
        self.log.append(("graph", number(executable)))
        for action in self._graphs[number(executable)]:
            action()

    def _cuEventRecord(self, event: Any, stream: Any) -> None:
        self.log.append(("event",))
        self._events[number(event)] = self.clock

    def _cuMemsetD8Async(self, address: Any, value: Any, count: Any, stream: Any) -> None:
        byte = np.uint8(value.value[0])
        self._do("fill", lambda: self._set(number(address), byte, number(count)))

    def _cuMemsetD16Async(self, address: Any, value: Any, count: Any, stream: Any) -> None:
        self._do("fill", lambda: self._set(number(address), np.uint16(number(value)), 2 * number(count)))

    def _cuMemsetD32Async(self, address: Any, value: Any, count: Any, stream: Any) -> None:
        self._do("fill", lambda: self._set(number(address), np.uint32(number(value)), 4 * number(count)))

    def _cuMemcpyDtoDAsync_v2(self, target: Any, source: Any, count: Any, stream: Any) -> None:
        data = self.memory.view(number(source), number(count)).copy()
        self.memory.view(number(target), number(count))[:] = data

    def _cuLaunchKernelEx(self, config: Any, function: Any, pointers: Any, extra: Any) -> None:
        name = self._names[number(function)]
        values = [ctypes.cast(pointer, ctypes.POINTER(ctypes.c_ulonglong))[0] for pointer in pointers if pointer]
        grid = tuple(config._obj.grid)

        def run() -> None:
            self.clock += 1
            self.log.append(("kernel", name))
            self.kernels[name](self.memory, values, grid)

        self._do("kernel", run)

    def _cuLaunchKernel(self, function: Any, *rest: Any) -> None:
        name, pointers = self._names[number(function)], rest[-2]
        values = [ctypes.cast(pointer, ctypes.POINTER(ctypes.c_ulonglong))[0] for pointer in pointers]
        self._do("own", lambda: OWN[name](self, *values))


def _renew(cuda: FakeCuda, target: int, base: int, factors: int, elements: int, start: int, count: int) -> None:
    places = (start + np.arange(elements)) % count
    table = cuda.memory.array(factors, "float32", count)
    cuda.memory.array(target, "float32", elements)[:] = cuda.memory.array(base, "float32", elements) * table[places]


def _fingerprint(cuda: FakeCuda, data: int, words: int, total: int) -> None:
    content = cuda.memory.view(data, 16 * words).tobytes()
    ledger = cuda.memory.array(total, "uint64", 1)
    ledger[0] = (int(ledger[0]) + hash(content)) & (2**64 - 1)


def _stamp(cuda: FakeCuda, where: int) -> None:
    cuda.memory.array(where, "uint64", 3)[:] = (cuda.clock * 1000 + 1, cuda.clock * 1980 + 1, 0)


def _health(cuda: FakeCuda, where: int, key: int) -> None:
    words = [(index * 0x9E3779B97F4A7C15 + key) & (2**64 - 1) for index in range(64 * 256)]
    cuda.memory.array(where, "uint64", len(words))[:] = np.array(words, np.uint64)


def _differ(cuda: FakeCuda, left: int, right: int, elements: int, relative: int, absolute: int, tally: int) -> None:
    share, least = (float(np.array([bits], "uint32").view("float32")[0]) for bits in (relative, absolute))
    one, other = (cuda.memory.array(place, "float32", elements).astype("float64") for place in (left, right))
    with np.errstate(invalid="ignore"):
        near = np.abs(one - other) <= share * np.maximum(np.abs(one), np.abs(other)) + least
    apart = np.flatnonzero(~(near | (np.isnan(one) & np.isnan(other))))
    if len(apart):
        words = cuda.memory.array(tally, "uint64", 2)
        words[0] += np.uint64(len(apart))
        words[1] = min(int(words[1]), int(apart[0]))


def _read(cuda: FakeCuda, data: int, words: int, total: int) -> None:
    cuda.memory.view(data, 16 * words)
    cuda.log.append(("read", 16 * words))


OWN: dict[str, Any] = {"renew_float32": _renew, "differ_float32": _differ, "fingerprint": _fingerprint,
                       "stamp": _stamp, "health": _health, "read": _read,
                       "hold": lambda cuda, nanoseconds: None}
