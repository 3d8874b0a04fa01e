"""One timing round of one shape: fresh placement, and for every sample fresh contents, poison, cold caches and no view
of the other side's memory.

A sample is the time between two device events around one graph replay. All work of a plan is inside its graph, and the
graph has ended when the second event passes, so that nothing can run outside the clock; outputs are fingerprinted in
stream order right behind it and again when the device is idle, in case this should ever fail to hold.
"""

from __future__ import annotations

import ctypes
import math
import time
from collections.abc import Callable
from ctypes import c_uint, c_ulonglong, c_void_p
from functools import partial
from typing import Any

from harness.backends.triton.launcher.arena import ALIGN, Arena, Block, rounded
from harness.backends.triton.launcher.arrays import span_bytes
from harness.backends.triton.launcher.call import check_arrays, poison_blocks, scratch_blocks
from harness.backends.triton.launcher.contents import Contents
from harness.backends.triton.launcher.driver import Cuda
from harness.backends.triton.launcher.graphs import Graph, Loaded, Program
from harness.backends.triton.launcher.memory import mapped
from harness.backends.triton.launcher.own_kernels import READ_UNIT, OwnKernels
from harness.backends.triton.launcher.rings import Ring, bytes_at, copy
from harness.backends.triton.launcher.twins import Twins
from harness.evaluation.poison import output_poison

LEDGER_WORDS = 16
HOLD_NS = 100_000
"""Before a sample the device is kept busy for as long as the host needs to enqueue all of it: what the host needed
beyond the flush (about 15 us for a graph) stood in the time of a batch of short calls."""
EMPTY_SAMPLES = 21
SLOPE_POISON = 0x7A5A
"""Outputs hold this huge value before a slope is measured; nothing is verified there."""


class Side:
    """One plan of a round with its own scratch, and the graphs captured so far."""

    def __init__(self, arena: Arena, loaded: Loaded) -> None:
        self.loaded = loaded
        self.scratch = scratch_blocks(arena, loaded)
        self.graphs: dict[tuple[int, ...], Graph] = {}


class Round:
    """Memory and graphs of one ``RoundRequest``."""

    def __init__(self, cuda: Cuda, arena: Arena, contents: Contents, own: OwnKernels, stream: c_void_p,
                 request: dict[str, Any], sides: dict[str, Loaded], fds: list[int], l2_bytes: int) -> None:
        """``fds``: the factor table, then the arrays' memory files."""
        self._cuda, self._arena, self._contents, self._own, self._stream = cuda, arena, contents, own, stream
        self._request, self._arrays = request, request["arrays"]
        for loaded in sides.values():
            check_arrays(loaded, self._arrays)
        if request["spacer"]:
            arena.allocate(request["spacer"])
        self._rings = [Ring(cuda, arena, array, self._copies(array)) for array in self._arrays]
        self._sides = {name: Side(arena, loaded) for name, loaded in sides.items()}
        self._flush, self._clean = (arena.allocate(count) for count in (2 * l2_bytes, rounded(2 * l2_bytes, READ_UNIT)))
        self._ledger = arena.allocate(8 * LEDGER_WORDS)
        self._sums = arena.allocate(16)
        self._around: dict[tuple[int, ...], int] = {}
        """Fingerprints of what lies around the arrays of some slots, from before any kernel ran."""
        self._twins = Twins(cuda, arena, own, request, self._outputs_of())
        self._factors = self._first_contents(fds[0], 0, 4 * request["factor_count"])
        self._bases: dict[str, Block] = {}
        self._constants: dict[int, Block] = {}
        for number, (array, fd) in enumerate(zip(self._arrays, fds[1:], strict=True)):
            self._load_contents(number, array, fd)
        self._keep = arena.allocate(max(1, sum(rounded(keep["count"], ALIGN) for sweep in request["sweeps"]
                                               for keep in sweep["keeps"])))
        self._start, self._end = cuda.event(), cuda.event()
        cuda.wait(stream)
        contents.hide_all_but(self._vault)

    def _first_contents(self, fd: int, offset: int, count: int) -> Block:
        """A device copy of a part of a memory file: the one of an earlier round, or uploaded now."""
        block = self._contents.keep(fd, offset, count)
        if block is None:
            block = self._arena.allocate(count)
            with mapped(fd, offset + count) as view:
                self._cuda.upload(block.address, view + offset, count)
        return block

    def _copies(self, array: dict[str, Any]) -> int:
        """Slots of a ring: one where the contents do not change per call."""
        changing = array["kind"] == "output" or array["name"] in self._request["renewed"]
        return int(self._request["slots"]) if changing else 1

    def _load_contents(self, number: int, array: dict[str, Any], fd: int) -> None:
        ring = self._rings[number]
        if not ring.is_input:
            block = self._arena.allocate(array["nbytes"])
            with mapped(fd, array["nbytes"]) as view:  # closes the descriptor
                self._cuda.upload(block.address, view, array["nbytes"])
            ring.lay(self._stream, block)
            self._cuda.wait(self._stream)
            self._arena.free([block])
            return
        block = self._first_contents(fd, 0, array["nbytes"])
        self._cuda.wait(self._stream)
        self._arena.show([block])  # a round before this one hid it
        ring.lay(self._stream, block)
        if array["name"] in self._request["renewed"]:
            self._bases[array["name"]] = block
        else:
            self._constants[number] = block

    def _address(self, number: int, slot: int) -> int:
        """Where argument ``number`` of ring slot ``slot`` starts."""
        return self._rings[number].address(slot)

    @property
    def _vault(self) -> list[Block]:
        """What no measured kernel may see: first contents, factors and kept outputs."""
        return [*self._bases.values(), *self._constants.values(), self._factors, self._keep, self._sums,
                *self._twins.blocks]

    def run(self) -> dict[str, Any]:
        """All sweeps; the answer document and the kept bytes."""
        sweeps = self._request["sweeps"]
        us: dict[str, list[float]] = {name: [] for name in self._sides}
        late: list[tuple[str, int]] = []
        written: list[tuple[str, int]] = []
        strayed: list[tuple[str, int]] = []
        apart: list[dict[str, Any]] = []
        clocks: list[float | None] = []
        kept, place = [], self._keep.address
        self._around = {tuple(sweep["slots"]): 0 for sweep in sweeps}
        self._look_around()
        for name in self._sides if sweeps else ():
            self._warm(name, sweeps[0])
            if self._strayed(sweeps[0]["slots"]):
                strayed.append((name, 0))
        for number, sweep in enumerate(sweeps):
            for turn, name in enumerate(sweep["order"]):
                self._prepare(sweep)
                before = self._input_sum(sweep["slots"])
                time_us, is_late, mhz = self._sample(name, sweep)
                self._arena.show(self._vault)
                if self._input_sum(sweep["slots"]) != before:
                    written.append((name, number))
                if self._strayed(sweep["slots"]):
                    strayed.append((name, number))
                apart += [{"sweep": number, **found} for found in self._twins.look(self._stream, name, sweep)]
                us[name].append(time_us)
                if is_late:
                    late.append((name, number))
                if turn == 0:
                    clocks.append(mhz)
                if name == sweep["kept_side"]:
                    for keep in sweep["keeps"]:
                        copy(self._cuda, self._stream, place, self._output(keep), keep["count"])
                        kept.append((place, keep["count"]))
                        place += rounded(keep["count"], ALIGN)
        self._cuda.wait(self._stream)
        answer = {"us": us, "late": late, "written": written, "strayed": strayed, "apart": apart, "mhz": clocks,
                  "empty_us": self._empty_us()}
        self._arena.show(self._vault)
        return {**answer, "kept": [bytes_at(self._cuda, address, count) for address, count in kept]}

    def _output(self, keep: dict[str, Any]) -> int:
        number = next(i for i, array in enumerate(self._arrays) if array["name"] == keep["output"])
        return self._address(number, keep["slot"]) + int(keep["offset"])

    def _graph(self, name: str, slots: tuple[int, ...]) -> Graph:
        side = self._sides[name]
        if slots not in side.graphs:
            scratch = [block.address for block in side.scratch]
            programs = [Program(self._cuda, side.loaded, [self._address(i, slot) for i in range(len(self._arrays))] +
                                scratch) for slot in slots]
            side.graphs[slots] = Graph(self._cuda, self._stream, programs)
        return side.graphs[slots]

    def _warm(self, name: str, sweep: dict[str, Any]) -> None:
        """First launch of a side: the driver loads its code now."""
        self._prepare(sweep)
        self._only(name)
        self._graph(name, tuple(sweep["slots"])).launch(self._stream)
        self._cuda.wait(self._stream)
        self._arena.show(self._vault)

    def _prepare(self, sweep: dict[str, Any]) -> None:
        """New contents of the slots, poison in outputs and in every side's scratch. Inputs that do not change per call
        are restored: one side could have written to what the other side reads."""
        self._cuda.wait(self._stream)
        self._arena.show([*self._vault, *(block for side in self._sides.values() for block in side.scratch)])
        for number, block in self._constants.items():
            copy(self._cuda, self._stream, self._rings[number].start(0), block.address, block.nbytes)
        for slot, start in zip(sweep["slots"], sweep["starts"], strict=True):
            for number, array in enumerate(self._arrays):
                if array["name"] in self._bases:
                    start = self._renew(number, array, slot, start)
                elif array["kind"] == "output":
                    self._cuda.fill16(self._address(number, slot), output_poison(array["dtype"], sweep["poison"]),
                                      span_bytes(array), self._stream)
        for side in self._sides.values():
            poison_blocks(self._cuda, self._stream, side.scratch, sweep["poison"])

    def _renew(self, number: int, array: dict[str, Any], slot: int, start: int) -> int:
        """As ``Lending.renew``; where the next input's factors start."""
        elements, table = math.prod(array["shape"]), int(self._request["factor_count"])
        start %= max(table - elements, 0) + 1 if table > elements else table
        base = self._bases[array["name"]].address + array["offset"]
        self._own.renew(self._stream, array["dtype"], self._address(number, slot), base, self._factors.address,
                        elements, start, table)
        return start + elements

    def _only(self, name: str) -> None:
        """Hide from kernels what is not this side's."""
        self._cuda.wait(self._stream)
        others = [block for other, side in self._sides.items() if other != name for block in side.scratch]
        self._arena.hide([*self._vault, *others])

    def _sample(self, name: str, sweep: dict[str, Any]) -> tuple[float, bool, float | None]:
        slots = tuple(sweep["slots"])
        graph = self._graph(name, slots)
        ledger = self._ledger.address
        self._cuda("cuMemsetD32Async", c_ulonglong(ledger), c_uint(0), ctypes.c_size_t(2 * LEDGER_WORDS), self._stream)
        self._only(name)
        self._own.hold(self._stream, HOLD_NS)
        if sweep["flush"]:
            self._flush_caches(sweep["poison"], ledger + 72)
        else:
            self._warm_caches(slots, ledger + 72)
        self._own.stamp(self._stream, ledger + 16)
        self._cuda("cuEventRecord", self._start, self._stream)
        graph.launch(self._stream)
        self._cuda("cuEventRecord", self._end, self._stream)
        self._own.stamp(self._stream, ledger + 48)
        self._fingerprint(slots, ledger)
        self._cuda.wait(self._stream)
        self._fingerprint(slots, ledger + 8)
        self._cuda.wait(self._stream)
        words = (ctypes.c_ulonglong * LEDGER_WORDS)()
        self._cuda.download(words, ledger, 8 * LEDGER_WORDS)
        return (self._cuda.elapsed_us(self._start, self._end) / len(slots), words[0] != words[1],
                _mhz(tuple(words[2:5]), tuple(words[6:9])))

    def _outputs_of(self) -> dict[str, Callable[[int], tuple[int, int, str]]]:
        """Per output: address, elements and dtype by slot."""
        def place(number: int, slot: int) -> tuple[int, int, str]:
            array = self._arrays[number]
            return self._address(number, slot), math.prod(array["shape"]), str(array["dtype"])

        return {array["name"]: partial(place, number) for number, array in enumerate(self._arrays)
                if array["kind"] == "output"}

    def _input_sum(self, slots: list[int]) -> int:
        """A fingerprint of all inputs of ``slots``; the device is idle afterwards, the vault has to be visible."""
        return self._sum_of([ring.words(slot) for ring in self._rings if ring.is_input
                             for slot in ring.distinct(slots)])

    def _strayed(self, slots: list[int]) -> bool:
        """Whether what surrounds the arrays of ``slots`` has changed since it was last looked at. It is looked at
        again, so that nobody is charged with what another one did."""
        if self._surroundings(slots) == self._around[tuple(slots)]:
            return False
        self._look_around()
        return True

    def _look_around(self) -> None:
        for slots in self._around:
            self._around[slots] = self._surroundings(list(slots))

    def _surroundings(self, slots: list[int]) -> int:
        """A fingerprint of what surrounds the arrays of ``slots``, which nobody may write to."""
        return self._sum_of([part for ring in self._rings for slot in ring.distinct(slots)
                             for part in ring.surroundings(slot)])

    def _sum_of(self, stretches: list[tuple[int, int]]) -> int:
        """One fingerprint of several stretches of memory; the device is idle afterwards."""
        self._cuda.fill16(self._sums.address, 0, 16, self._stream)
        for start, count in stretches:
            self._own.fingerprint(self._stream, start, count, self._sums.address)
        self._cuda.wait(self._stream)
        return int.from_bytes(bytes_at(self._cuda, self._sums.address, 8), "little")

    def _warm_caches(self, slots: tuple[int, ...], total: int) -> None:
        """Read the inputs, so that they lie in the caches as far as they fit: by the launcher's own kernel, because the
        side itself must not have seen these contents before."""
        for slot in slots:
            for number, array in enumerate(self._arrays):
                if array["kind"] == "input":
                    self._own.fingerprint(self._stream, *self._rings[number].words(slot), total)

    def _flush_caches(self, pattern: int, total: int) -> None:
        """Write twice the cache, then read twice the cache of something else. After writing alone the cache is full of
        lines that have to be written back, and whoever reads much next would be charged for it."""
        self._cuda("cuMemsetD32Async", c_ulonglong(self._flush.address), c_uint(pattern),
                   ctypes.c_size_t(self._flush.nbytes // 4), self._stream)
        self._own.read(self._stream, self._clean.address, self._clean.nbytes, total)

    def _fingerprint(self, slots: tuple[int, ...], total: int) -> None:
        for slot in slots:
            for number, array in enumerate(self._arrays):
                if array["kind"] == "output":
                    self._own.fingerprint(self._stream, *self._rings[number].words(slot), total)

    def _empty_us(self) -> float:
        """An event pair around a graph that does nothing: what the clock itself costs."""
        graph = Graph(self._cuda, self._stream, [])
        found = []
        for _ in range(EMPTY_SAMPLES):
            self._flush_caches(0, self._ledger.address + 72)
            self._cuda("cuEventRecord", self._start, self._stream)
            graph.launch(self._stream)
            self._cuda("cuEventRecord", self._end, self._stream)
            self._cuda.wait(self._stream)
            found.append(self._cuda.elapsed_us(self._start, self._end))
        graph.close()
        return sorted(found)[EMPTY_SAMPLES // 2]

    def slope(self, name: str, times: int) -> tuple[int, float]:
        """``times`` back-to-back passes of one side through the whole ring: calls, and seconds by the wall clock."""
        slots = tuple(range(int(self._request["slots"])))
        starts = [slot * int(self._request["factor_count"]) // len(slots) for slot in slots]
        self._prepare({"slots": slots, "starts": starts, "poison": SLOPE_POISON})
        self._only(name)
        graph = self._graph(name, slots)
        began = time.perf_counter()
        for _ in range(times):
            graph.launch(self._stream)
        self._cuda.wait(self._stream)
        return times * len(slots), time.perf_counter() - began

    def close(self) -> None:
        """Give graphs and memory back; first contents stay for the next round."""
        self._cuda.wait(self._stream)
        for side in self._sides.values():
            for graph in side.graphs.values():
                graph.close()
        self._arena.clear()


def _mhz(before: tuple[int, ...], after: tuple[int, ...]) -> float | None:
    """Cycles per microsecond between two stamps of one multiprocessor."""
    if before[2] != after[2] or after[0] <= before[0]:
        return None
    return (after[1] - before[1]) / (after[0] - before[0]) * 1e3
