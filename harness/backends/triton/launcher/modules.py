"""Loading the binaries of a plan and holding them against the plan's arguments before anything runs."""

from __future__ import annotations

import ctypes
from ctypes import c_char_p, c_int, c_size_t, c_void_p
from dataclasses import dataclass
from typing import Any

from harness.backends.triton.launcher.driver import Cuda, CudaError
from harness.backends.triton.launcher.refused import PlanRefused

STATIC_SHARED, MAX_DYNAMIC, NONPORTABLE_CLUSTER = 1, 8, 14
SCALAR_BYTES = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "u1": 1, "u8": 1, "u16": 2, "u32": 4, "u64": 8,
                "fp16": 2, "bf16": 2, "fp32": 4, "f32": 4, "fp64": 8}
MAP_BYTES = 128
PORTABLE_CLUSTER = 8
DEFAULT_SHARED = 48 << 10


@dataclass(frozen=True, slots=True)
class Function:
    """One loaded kernel function with what its launch needs."""

    handle: c_void_p
    num_warps: int
    num_ctas: int
    shared_bytes: int


def load_function(cuda: Cuda, document: dict[str, Any], cubin: bytes, optin: int) -> Function:
    """Load one binary and prepare its attributes.

    Raises:
        PlanRefused: the binary is not for this device, or asks for more shared memory than a block can have.
    """
    module, function = c_void_p(), c_void_p()
    try:
        cuda("cuModuleLoadData", ctypes.byref(module), c_char_p(cubin))
        cuda("cuModuleGetFunction", ctypes.byref(function), module, str(document["symbol"]).encode())
    except CudaError as error:
        text = f"The binary of '{document['symbol']}' does not load here: {error.words}."
        raise PlanRefused("binary", text) from error
    shared, static = int(document["shared_bytes"]), c_int()
    cuda("cuFuncGetAttribute", ctypes.byref(static), c_int(STATIC_SHARED), function)
    if shared + static.value > optin:
        raise PlanRefused("shared", f"'{document['symbol']}' needs {shared + static.value} bytes of shared memory per "
                                    f"block; the device has {optin}.")
    if shared > DEFAULT_SHARED:
        cuda("cuFuncSetAttribute", function, c_int(MAX_DYNAMIC), c_int(shared))
    ctas = int(document["num_ctas"])
    if ctas > PORTABLE_CLUSTER:
        cuda("cuFuncSetAttribute", function, c_int(NONPORTABLE_CLUSTER), c_int(1))
    return Function(function, int(document["num_warps"]), ctas, shared)


def parameter_sizes(cuda: Cuda, function: Function) -> list[int]:
    """Bytes of each parameter as the binary declares them: what the driver will read from the host."""
    sizes: list[int] = []
    offset, size = c_size_t(), c_size_t()
    while not cuda.attempt("cuFuncGetParamInfo", function.handle, c_size_t(len(sizes)), ctypes.byref(offset),
                           ctypes.byref(size)):
        sizes.append(size.value)
    return sizes


def argument_sizes(arguments: list[dict[str, Any]]) -> list[int]:
    """Bytes of each plan argument.

    Raises:
        PlanRefused: a scalar of a type that plans do not hold, or whose bytes do not fit its type.
    """
    sizes = []
    for number, argument in enumerate(arguments):
        if "scalar" in argument:
            wanted = SCALAR_BYTES.get(argument["scalar"])
            if wanted is None:
                raise PlanRefused("unsupported", f"Argument {number} is a scalar of type {argument['scalar']}.")
            if len(argument["hex"]) != 2 * wanted:
                raise PlanRefused("forged", f"Argument {number} has {len(argument['hex']) // 2} bytes, not {wanted}.")
            sizes.append(wanted)
        else:
            sizes.append(MAP_BYTES if "tensormap" in argument else 8)
    return sizes
