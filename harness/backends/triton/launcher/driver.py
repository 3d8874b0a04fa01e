"""The CUDA driver through ctypes: the few entry points that a launcher needs, every return code checked."""

from __future__ import annotations

import ctypes
from ctypes import c_char_p, c_int, c_size_t, c_uint, c_ulonglong, c_void_p
from typing import Any, NoReturn

FAULTS = {
    2: "out_of_memory",
    700: "illegal_address",
    701: "out_of_resources",
    714: "launch_failed",
    715: "illegal_instruction",
    716: "misaligned_address",
    717: "illegal_address",
    718: "illegal_address",
    719: "launch_failed",
    720: "too_large",
}
"""Driver error codes that a kernel can cause, by the name that answers carry."""
DEFAULT_STREAM = c_void_p(0)
ALIVE = (1, 2, 200, 209, 701, 720)
"""Errors that leave the context usable: refused before anything ran."""


class CudaError(Exception):
    """A driver call failed: its name, the code, and the driver's own words."""

    def __init__(self, call: str, code: int, words: str) -> None:
        super().__init__(f"{call} failed with {words} ({code})")
        self.call, self.code, self.words = call, code, words

    @property
    def fault(self) -> str:
        """The name of a fault that kernels cause; ``driver_error`` for all others."""
        return FAULTS.get(self.code, "driver_error")

    @property
    def dead(self) -> bool:
        """Whether the context is of no more use."""
        return self.code not in ALIVE


class Location(ctypes.Structure):
    """``CUmemLocation``."""

    _fields_ = (("type", c_int), ("id", c_int))


class AllocationProperties(ctypes.Structure):
    """``CUmemAllocationProp``: pinned device memory, no export."""

    _fields_ = (
        ("type", c_int),
        ("handles", c_int),
        ("location", Location),
        ("win32", c_void_p),
        ("flags", c_ulonglong),
    )


class AccessDescription(ctypes.Structure):
    """``CUmemAccessDesc``."""

    _fields_ = (("location", Location), ("flags", c_int))


class Attribute(ctypes.Structure):
    """``CUlaunchAttribute``: 72 bytes, the value starts at 8."""

    _fields_ = (("id", c_uint), ("pad", c_uint), ("value", c_uint * 16))


class LaunchConfig(ctypes.Structure):
    """``CUlaunchConfig``: the stream lies at byte 32."""

    _fields_ = (
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared", c_uint),
        ("pad", c_uint),
        ("stream", c_void_p),
        ("attributes", ctypes.POINTER(Attribute)),
        ("count", c_uint),
    )


class Cuda:
    """The driver with the primary context of one device made current."""

    def __init__(self, index: int) -> None:
        """Raises ``OSError`` without a driver library and ``CudaError`` without a usable device."""
        self._lib = ctypes.CDLL("libcuda.so.1")
        self._lib.cuGetErrorName.argtypes = (c_int, ctypes.POINTER(c_char_p))
        self("cuInit", c_uint(0))
        version = c_int()
        self("cuDriverGetVersion", ctypes.byref(version))
        self.version = version.value
        device = c_int()
        self("cuDeviceGet", ctypes.byref(device), c_int(index))
        self.device = device.value
        context = c_void_p()
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self("cuCtxSetCurrent", context)

    def __call__(self, name: str, *arguments: Any) -> None:
        """Call the entry point ``name``.

        Raises:
            CudaError: it did not return success.
        """
        code = getattr(self._lib, name)(*arguments)
        if code:
            self.fail(name, code)

    def fail(self, name: str, code: int) -> NoReturn:
        """Raise ``CudaError`` for a return code of ``name``."""
        text = c_char_p()
        self._lib.cuGetErrorName(code, ctypes.byref(text))
        raise CudaError(name, code, (text.value or b"an unknown error").decode())

    def attempt(self, name: str, *arguments: Any) -> int:
        """The same without an exception: the return code."""
        return int(getattr(self._lib, name)(*arguments))

    def attribute(self, number: int) -> int:
        """One ``CUdevice_attribute``."""
        value = c_int()
        self("cuDeviceGetAttribute", ctypes.byref(value), c_int(number), c_int(self.device))
        return value.value

    def stream(self) -> c_void_p:
        """A new stream that does not wait for the default one."""
        made = c_void_p()
        self("cuStreamCreate", ctypes.byref(made), c_uint(1))
        return made

    def event(self) -> c_void_p:
        """A new event with timing."""
        made = c_void_p()
        self("cuEventCreate", ctypes.byref(made), c_uint(0))
        return made

    def elapsed_us(self, start: c_void_p, end: c_void_p) -> float:
        """Microseconds between two events that have passed."""
        value = ctypes.c_float()
        self("cuEventElapsedTime", ctypes.byref(value), start, end)
        return value.value * 1e3

    def upload(self, address: int, data: ctypes.Array[Any] | bytes | int, count: int) -> None:
        """Copy ``count`` bytes of host memory to the device; returns when they are there.

        The copy alone returns when pageable memory has been read, with its last part still on the way, and streams
        that do not wait for the default one could overtake it.
        """
        self("cuMemcpyHtoD_v2", c_ulonglong(address), c_void_p(data) if isinstance(data, int) else data,
             c_size_t(count))
        self("cuStreamSynchronize", DEFAULT_STREAM)

    def download(self, target: Any, address: int, count: int) -> None:
        """Copy ``count`` bytes from the device to host memory (a ctypes array or an address)."""
        self("cuMemcpyDtoH_v2", c_void_p(target) if isinstance(target, int) else target, c_ulonglong(address),
             c_size_t(count))

    def fill16(self, address: int, pattern: int, count: int, stream: c_void_p) -> None:
        """Fill ``count`` bytes (even) with a 16-bit pattern, in stream order."""
        self("cuMemsetD16Async", c_ulonglong(address), ctypes.c_ushort(pattern), c_size_t(count // 2), stream)

    def wait(self, stream: c_void_p) -> None:
        """Wait until everything in ``stream`` is done."""
        self("cuStreamSynchronize", stream)
