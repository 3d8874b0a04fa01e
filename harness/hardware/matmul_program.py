"""Measures the matmul roof of a GPU and prints it as JSON; run as a program of its own by ``matmul.measure``.

Large square bfloat16 products by cuBLAS through ctypes: the library that torch brings along, or the toolkit's. No
torch, no Triton, nothing of a candidate. Standard library only, so that the file runs by its path.
"""

from __future__ import annotations

import array
import ctypes
import ctypes.util
import importlib.util
import json
import random
import sys
from collections.abc import Iterator
from ctypes import c_float, c_int, c_size_t, c_uint, c_ulonglong, c_void_p
from pathlib import Path
from typing import Any

SIZES = {4096: 6, 8192: 2}
"""Edge of the matrices, and products back to back in one sample."""
SAMPLES = 12
BFLOAT16, FLOAT32_SUMS, DEFAULT_ALGORITHM = 14, 68, -1
UNTOUCHED = 0xFFFF
PATTERN_WORDS = 1 << 18
TOOLKITS = ("/usr/local/cuda/lib64", "/usr/local/cuda/targets/x86_64-linux/lib", "/usr/lib/x86_64-linux-gnu")


class Failed(Exception):
    """A library call that did not succeed, or nothing to call."""


def main() -> None:
    """Read ``{"index": n}`` from the command line, answer on standard output: ``flops`` (operations per second),
    ``size`` and ``origin``, or ``absent`` with the reason."""
    asked = json.loads(sys.argv[1])
    try:
        answer: dict[str, Any] = measured(int(asked["index"]))
    except (Failed, OSError) as error:
        answer = {"absent": str(error)}
    sys.stdout.write(json.dumps(answer) + "\n")


def candidates() -> Iterator[Path]:
    """Where libcublas may lie: beside torch's other libraries, in a toolkit, where the linker looks."""
    spec = importlib.util.find_spec("nvidia")
    for place in (spec.submodule_search_locations or () if spec else ()):
        yield from sorted(Path(place).glob("*/lib/libcublas.so.*"), reverse=True)
    for folder in TOOLKITS:
        yield from sorted(Path(folder).glob("libcublas.so.*"), reverse=True)
    known = ctypes.util.find_library("cublas")
    if known:
        yield Path(known)


def library() -> ctypes.CDLL:
    """The first libcublas that loads. Raises ``Failed``."""
    for path in candidates():
        for companion in sorted(path.parent.glob("libcublasLt.so.*")):
            try:
                ctypes.CDLL(str(companion), mode=ctypes.RTLD_GLOBAL)
            except OSError:
                continue
        try:
            return ctypes.CDLL(str(path))
        except OSError:
            continue
    raise Failed("libcublas is not installed here")


class Driver:
    """The CUDA driver with the primary context of one device."""

    def __init__(self, index: int) -> None:
        self._lib = ctypes.CDLL("libcuda.so.1")
        self("cuInit", c_uint(0))
        device, context = c_int(), c_void_p()
        self("cuDeviceGet", ctypes.byref(device), c_int(index))
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self("cuCtxSetCurrent", context)

    def __call__(self, name: str, *arguments: Any) -> None:
        """Call an entry point. Raises ``Failed``."""
        code = getattr(self._lib, name)(*arguments)
        if code:
            raise Failed(f"{name} failed with error {code}")

    def memory(self, nbytes: int) -> c_ulonglong:
        """Device memory."""
        made = c_ulonglong()
        self("cuMemAlloc_v2", ctypes.byref(made), c_size_t(nbytes))
        return made

    def event(self) -> c_void_p:
        """An event with timing."""
        made = c_void_p()
        self("cuEventCreate", ctypes.byref(made), c_uint(0))
        return made

    def elapsed_s(self, start: c_void_p, end: c_void_p) -> float:
        """Seconds between two events, once both have passed."""
        value = c_float()
        self("cuEventElapsedTime", ctypes.byref(value), start, end)
        return value.value * 1e-3


def measured(index: int) -> dict[str, Any]:
    """The best rate of all sizes and samples. Raises ``Failed``."""
    driver, blas = Driver(index), library()
    handle, number = c_void_p(), c_int()
    _ok("cublasCreate_v2", blas.cublasCreate_v2(ctypes.byref(handle)))
    _ok("cublasGetVersion_v2", blas.cublasGetVersion_v2(handle, ctypes.byref(number)))
    most = 2 * max(SIZES) ** 2
    left, right, out = (driver.memory(most) for _ in range(3))
    for place in (left, right):
        _fill(driver, place, most)
    best, chosen = 0.0, 0
    for size, times in SIZES.items():
        seconds = min(_samples(driver, blas, handle, size, times, (left, right, out)))
        if 2.0 * size**3 / seconds > best:
            best, chosen = 2.0 * size**3 / seconds, size
    word = ctypes.c_ushort()
    driver("cuMemcpyDtoH_v2", ctypes.byref(word), out, c_size_t(2))
    if word.value == UNTOUCHED:
        raise Failed("the product left its output untouched")
    value = number.value
    return {"flops": best, "size": chosen,
            "origin": f"cuBLAS {value // 10_000}.{value // 100 % 100}.{value % 100}, bfloat16, {chosen} cubed"}


def _samples(driver: Driver, blas: ctypes.CDLL, handle: c_void_p, size: int, times: int,
             places: tuple[c_ulonglong, c_ulonglong, c_ulonglong]) -> list[float]:
    """Seconds per product, sample by sample; the first, which chooses and loads a kernel, is left out."""
    one, zero = c_float(1.0), c_float(0.0)
    left, right, out = places
    start, end = driver.event(), driver.event()
    driver("cuMemsetD16_v2", out, ctypes.c_ushort(UNTOUCHED), c_size_t(size * size))
    found = []
    for _ in range(SAMPLES + 1):
        driver("cuEventRecord", start, c_void_p(0))
        for _ in range(times):
            _ok("cublasGemmEx", blas.cublasGemmEx(
                handle, c_int(0), c_int(0), c_int(size), c_int(size), c_int(size), ctypes.byref(one), left,
                c_int(BFLOAT16), c_int(size), right, c_int(BFLOAT16), c_int(size), ctypes.byref(zero), out,
                c_int(BFLOAT16), c_int(size), c_int(FLOAT32_SUMS), c_int(DEFAULT_ALGORITHM)))
        driver("cuEventRecord", end, c_void_p(0))
        driver("cuEventSynchronize", end)
        found.append(driver.elapsed_s(start, end) / times)
    return found[1:]


def _fill(driver: Driver, place: c_ulonglong, nbytes: int) -> None:
    """Random signs and mantissas, magnitudes from 0.5 to 1: zeros would draw less power and run too fast."""
    draw = random.Random(nbytes)
    words = array.array("H", (draw.getrandbits(16) & 0x807F | 0x3F00 for _ in range(PATTERN_WORDS)))
    data = words.tobytes()
    for offset in range(0, nbytes, len(data)):
        driver("cuMemcpyHtoD_v2", c_ulonglong(place.value + offset), data, c_size_t(min(len(data), nbytes - offset)))


def _ok(name: str, code: int) -> None:
    if code:
        raise Failed(f"{name} failed with status {code}")


if __name__ == "__main__":
    main()
