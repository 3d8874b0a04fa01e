"""Prints what the CUDA driver reports of a GPU, as JSON; run as a program of its own, because a process that has once
initialised the driver may not fork sandboxes any more. Standard library only, so that the file runs by its path."""

from __future__ import annotations

import ctypes
import json
import sys
from ctypes import c_char, c_int, c_size_t, c_uint
from typing import Any

ATTRIBUTES = {
    "threads_per_block": 1, "shared_default": 8, "warp": 10, "clock_khz": 13, "multiprocessors": 16,
    "memory_clock_khz": 36, "bus_bits": 37, "l2_bytes": 38, "threads_per_sm": 39, "major": 75, "minor": 76,
    "shared_per_sm": 81, "registers_per_sm": 82, "shared_optin": 97, "blocks_per_sm": 106, "persisting_l2_bytes": 108,
    "shared_reserved": 111,
}
"""Numbers of ``CUdevice_attribute``."""


def main() -> None:
    """Attributes of the device whose index is on the command line; ``absent`` with the reason where there is none."""
    try:
        answer = facts(int(sys.argv[1]))
    except OSError as error:
        answer = {"absent": str(error)}
    sys.stdout.write(json.dumps(answer) + "\n")


def facts(index: int) -> dict[str, Any]:
    """Name, memory and attributes; an attribute that this driver does not know is left out. Raises ``OSError``."""
    cuda = ctypes.CDLL("libcuda.so.1")
    device = c_int()
    for name, arguments in (("cuInit", (c_uint(0),)), ("cuDeviceGet", (ctypes.byref(device), c_int(index)))):
        code = getattr(cuda, name)(*arguments)
        if code:
            raise OSError(f"{name} failed with error {code}")
    title, memory, value = (c_char * 128)(), c_size_t(), c_int()
    found: dict[str, Any] = {}
    if not cuda.cuDeviceGetName(title, c_int(128), device):
        found["name"] = title.value.decode("utf-8", "replace")
    if not cuda.cuDeviceTotalMem_v2(ctypes.byref(memory), device):
        found["memory_bytes"] = memory.value
    for name, number in ATTRIBUTES.items():
        if not cuda.cuDeviceGetAttribute(ctypes.byref(value), c_int(number), device) and value.value >= 0:
            found[name] = value.value
    return found


if __name__ == "__main__":
    main()
