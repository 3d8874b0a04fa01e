"""A launch's arguments as the bytes that the driver reads, for one set of buffer addresses."""

from __future__ import annotations

import ctypes
from ctypes import c_int, c_uint, c_ulonglong, c_void_p
from typing import Any

from harness.backends.triton.launcher.driver import Attribute, Cuda, LaunchConfig
from harness.backends.triton.launcher.modules import MAP_BYTES, Function
from harness.backends.triton.launcher.validate import MAP_ELEMENTS

COOPERATIVE, CLUSTER, CLUSTER_SCHEDULING, DEPENDENT = 2, 4, 5, 6
SPREAD = 1
L2_PROMOTION_128B = 2
TF32 = 11
SMALL_SPAN, SMALL_BIT, LAST_SMALL_DRIVER = 128 << 10, 1 << 21, 13_010
"""Triton clears this bit of a map's second 64-bit word for tensors that span less than ``SMALL_SPAN`` bytes, for
drivers up to 13.1; code and times are only comparable when the launcher does the same."""
NAN_FILL = {"nan": 1}


class Bound:
    """One launch, ready to be put into a stream; holds the host memory that its parameters live in."""

    def __init__(self, cuda: Cuda, function: Function, launch: dict[str, Any], addresses: list[int]) -> None:
        """``addresses`` has the device address of every buffer of the plan."""
        self._cuda, self._function = cuda, function
        self._values = [_value(cuda, argument, addresses) for argument in launch["args"]]
        self._pointers = (c_void_p * max(1, len(self._values)))(*(ctypes.addressof(value) for value in self._values))
        attributes = _attributes(launch, function.num_ctas)
        self._attributes = (Attribute * max(1, len(attributes)))(*attributes)
        x, y, z = launch["grid"]
        self._config = LaunchConfig(
            (c_uint * 3)(x * function.num_ctas, y, z), (c_uint * 3)(32 * function.num_warps, 1, 1),
            function.shared_bytes, 0, None, self._attributes, len(attributes),
        )

    def launch(self, stream: c_void_p) -> None:
        """Put the launch into ``stream``."""
        self._config.stream = stream
        self._cuda("cuLaunchKernelEx", ctypes.byref(self._config), self._function.handle, self._pointers, c_void_p(0))


def _attributes(launch: dict[str, Any], ctas: int) -> list[Attribute]:
    found = []
    if launch["cooperative"]:
        found.append(_attribute(COOPERATIVE, 1))
    if launch["pdl"]:
        found.append(_attribute(DEPENDENT, 1))
    if ctas > 1:
        found += [_attribute(CLUSTER, ctas, 1, 1), _attribute(CLUSTER_SCHEDULING, SPREAD)]
    return found


def _attribute(number: int, *values: int) -> Attribute:
    made = Attribute(number, 0)
    for place, value in enumerate(values):
        made.value[place] = value
    return made


def _value(cuda: Cuda, argument: dict[str, Any], addresses: list[int]) -> Any:
    if "null" in argument:
        return c_ulonglong(0)
    if "scalar" in argument:
        data = bytes.fromhex(argument["hex"])
        return ctypes.create_string_buffer(data, len(data))
    if "tensormap" in argument:
        return tensor_map(cuda, argument["tensormap"], addresses)
    return c_ulonglong(addresses[argument["buffer"]] + argument["offset"])


def tensor_map(cuda: Cuda, facts: dict[str, Any], addresses: list[int]) -> Any:
    """The 128 bytes of a tensor map, 64-byte aligned; dimensions in the driver's order, innermost first."""
    rank = len(facts["shape"])
    memory = (ctypes.c_char * (MAP_BYTES + 64))()
    start = -ctypes.addressof(memory) % 64
    made = (ctypes.c_char * MAP_BYTES).from_buffer(memory, start)
    width = facts["element_bytes"]
    sizes = (c_ulonglong * rank)(*reversed(facts["shape"]))
    strides = (c_ulonglong * max(1, rank - 1))(*(width * stride for stride in reversed(facts["strides"][:-1])))
    box = (c_uint * rank)(*reversed(facts["box"]))
    steps = (c_uint * rank)(*([1] * rank))
    element = TF32 if facts["tf32"] else MAP_ELEMENTS[facts["element_type"]]
    cuda(
        "cuTensorMapEncodeTiled", ctypes.byref(made), c_int(element), c_uint(rank),
        c_void_p(addresses[facts["buffer"]] + facts["offset"]), sizes, strides, box, steps, c_int(0),
        c_int(facts["swizzle"]), c_int(L2_PROMOTION_128B), c_int(NAN_FILL.get(facts["padding"].lower(), 0)),
    )
    last = width * sum((size - 1) * stride for size, stride in zip(facts["shape"], facts["strides"], strict=True))
    if cuda.version <= LAST_SMALL_DRIVER and last + 1 < SMALL_SPAN:
        (c_ulonglong * 2).from_buffer(made)[1] &= ~SMALL_BIT
    return made
