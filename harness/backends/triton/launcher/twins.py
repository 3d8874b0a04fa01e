"""Outputs of two sides from the same contents, compared on the device, whole: work left out under the clock shows."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping
from ctypes import c_size_t, c_ulonglong, c_void_p
from typing import Any

from harness.backends.triton.launcher.arena import ALIGN, Arena, Block, rounded
from harness.backends.triton.launcher.arrays import item_bytes
from harness.backends.triton.launcher.driver import Cuda
from harness.backends.triton.launcher.own_kernels import OwnKernels

NOWHERE = 2**64 - 1
Place = Callable[[int], tuple[int, int, str]]


class Twins:
    """Keeps the first compared side's outputs of a sweep and holds the second one's against them."""

    def __init__(self, cuda: Cuda, arena: Arena, own: OwnKernels, request: dict[str, Any],
                 outputs: Mapping[str, Place]) -> None:
        """``outputs``: per name the address, number of elements and dtype in a ring slot. Without ``compared`` in the
        request nothing is kept."""
        self._cuda, self._own, self._outputs = cuda, own, outputs
        self._compared = tuple(request.get("compared") or ())
        self._near = tuple(request.get("near") or (0.0, 0.0))
        self._first: str | None = None
        self.blocks: list[Block] = []
        if self._compared:
            most = max((len(sweep["slots"]) for sweep in request["sweeps"]), default=1)
            self._strides = {name: rounded(place(0)[1] * item_bytes(place(0)[2]), ALIGN)
                             for name, place in outputs.items()}
            self._kept = {name: arena.allocate(stride * most) for name, stride in self._strides.items()}
            self._tally = arena.allocate(16)
            self.blocks = [*self._kept.values(), self._tally]

    def look(self, stream: c_void_p, side: str, sweep: dict[str, Any]) -> list[dict[str, Any]]:
        """After ``side``'s turn, with the vault visible: keep its outputs, or say where they are apart."""
        if side not in self._compared or not sweep["flush"] or not set(self._compared) <= set(sweep["order"]):
            return []
        if self._first is None:
            self._first = side
            for turn, slot in enumerate(sweep["slots"]):
                for name, place in self._outputs.items():
                    address, elements, dtype = place(slot)
                    self._cuda("cuMemcpyDtoDAsync_v2", c_ulonglong(self._twin(name, turn)), c_ulonglong(address),
                               c_size_t(elements * item_bytes(dtype)), stream)
            self._cuda.wait(stream)
            return []
        self._first = None
        found = [self._difference(stream, side, name, turn, slot)
                 for turn, slot in enumerate(sweep["slots"]) for name in self._outputs]
        return [one for one in found if one is not None]

    def _twin(self, name: str, turn: int) -> int:
        return self._kept[name].address + turn * self._strides[name]

    def _difference(self, stream: c_void_p, side: str, name: str, turn: int, slot: int) -> dict[str, Any] | None:
        address, elements, dtype = self._outputs[name](slot)
        tally, twin = self._tally.address, self._twin(name, turn)
        self._cuda.fill16(tally, 0, 8, stream)
        self._cuda.fill16(tally + 8, 0xFFFF, 8, stream)
        self._own.differ(stream, dtype, address, twin, elements, (self._near[0], self._near[1]), tally)
        self._cuda.wait(stream)
        words = (ctypes.c_ulonglong * 2)()
        self._cuda.download(words, tally, 16)
        count, index = int(words[0]), int(words[1])
        if not count or index == NOWHERE:
            return None
        mine, other = (self._value(place, index, dtype) for place in (address, twin))
        judged, trusted = (mine, other) if side == self._compared[0] else (other, mine)
        return {"output": name, "slot": slot, "count": count, "index": index, "judged": judged, "trusted": trusted}

    def _value(self, address: int, index: int, dtype: str) -> float | str:
        """One element as a number; JSON has no NaN and no infinities, those are words."""
        width = item_bytes(dtype)
        data = (ctypes.c_char * width)()
        self._cuda.download(data, address + index * width, width)
        raw = bytes(data)
        if dtype == "bfloat16":
            value = struct.unpack("<f", b"\0\0" + raw)[0]
        else:
            code = {"float32": "<f", "float16": "<e", "int32": "<i", "int64": "<q"}[dtype]
            value = struct.unpack(code, raw)[0]
        return float(value) if abs(value) < float("inf") else str(value)
