"""One call of a plan on the judge's memory files: up, run, down."""

from __future__ import annotations

import ctypes
import time
from contextlib import ExitStack
from ctypes import c_void_p
from typing import Any

from harness.backends.triton.launcher.arena import ALIGN, Arena, Block
from harness.backends.triton.launcher.arrays import span_bytes
from harness.backends.triton.launcher.driver import Cuda
from harness.backends.triton.launcher.graphs import Graph, Loaded, Program
from harness.backends.triton.launcher.memory import mapped
from harness.backends.triton.launcher.own_kernels import OwnKernels
from harness.backends.triton.launcher.refused import PlanRefused
from harness.backends.triton.launcher.rings import fill_rest


def call(cuda: Cuda, arena: Arena, own: OwnKernels, stream: c_void_p, loaded: Loaded, arrays: list[dict[str, Any]],
         fds: list[int], *, drop: int | None, poison: int, exact: bool) -> dict[str, Any]:
    """Run ``loaded`` once as a graph; the answer document.

    ``arrays`` describe the memory files ``fds``, as ``ports.Lent`` does. Files go up whole, guard bands included, and
    those of outputs come back whole. With ``exact`` (under a sanitizer) only the arrays themselves do, outputs and
    scratch stay as the allocator left them, and nothing follows the array.

    Raises:
        PlanRefused: the arrays are not those of the plan.
        CudaError: a kernel failed.
    """
    check_arrays(loaded, arrays)
    began = time.monotonic()
    with ExitStack() as files:
        views = [files.enter_context(mapped(fd, array["nbytes"], writable=array["kind"] == "output"))
                 for fd, array in zip(fds, arrays, strict=True)]
        windows = [window(array, exact) for array in arrays]
        blocks = [arena.allocate(count) for _, count in windows]
        addresses = [block.address + _base(array) - start
                     for block, array, (start, _) in zip(blocks, arrays, windows, strict=True)]
        for view, array, block, (start, count) in zip(views, arrays, blocks, windows, strict=True):
            if array["kind"] == "input" or not exact:
                cuda.upload(block.address, view + start, count)
            fill_rest(cuda, stream, block.address, count, block.mapped)
        scratch = scratch_blocks(arena, loaded)
        if not exact:
            poison_blocks(cuda, stream, scratch, poison)
        inputs = [(array["name"], block.address, count) for array, block, (_, count) in
                  zip(arrays, blocks, windows, strict=True) if array["kind"] == "input"]
        before = _sums(cuda, arena, own, stream, inputs)
        program = Program(cuda, loaded, addresses + [block.address for block in scratch], drop)
        graph = Graph(cuda, stream, [program])
        graph.launch(stream)
        cuda.wait(stream)
        graph.close()
        after = _sums(cuda, arena, own, stream, inputs)
        changed = [name for (name, _, _), one, two in zip(inputs, before, after, strict=True) if one != two]
        for view, array, block, (start, count) in zip(views, arrays, blocks, windows, strict=True):
            if array["kind"] == "output":
                cuda.download(view + start, block.address, count)
        arena.free([*blocks, *scratch])
    return {"changed": changed, "seconds": time.monotonic() - began}


def check_arrays(loaded: Loaded, arrays: list[dict[str, Any]]) -> None:
    """The arrays have to be those that the plan was recorded for: kind, dtype, shape, strides, residue of the address.

    Raises:
        PlanRefused: with the first that is not.
    """
    buffers = [buffer for buffer in loaded.plan.buffers if buffer.kind in ("input", "output")]
    if len(buffers) != len(arrays):
        raise PlanRefused("arguments", f"The plan has {len(buffers)} arguments, {len(arrays)} were lent.")
    for buffer, array in zip(buffers, arrays, strict=True):
        given = (array["kind"], array["dtype"], tuple(array["shape"]), tuple(array["strides"]))
        if given != (buffer.kind, buffer.dtype, tuple(buffer.shape), tuple(buffer.strides)):
            raise PlanRefused("arguments", f"Argument '{array['name']}' is not the one of the recording.")
        if array["nbytes"] - _base(array) < buffer.bytes:
            raise PlanRefused("arguments", f"Argument '{array['name']}' has less than {buffer.bytes} bytes.")


def scratch_blocks(arena: Arena, loaded: Loaded) -> list[Block]:
    """A block of its own for every scratch buffer, in the plan's order."""
    return [arena.allocate(loaded.plan.buffers[number].bytes) for number in loaded.scratch]


def poison_blocks(cuda: Cuda, stream: c_void_p, blocks: list[Block], pattern: int) -> None:
    """Nothing remembered in scratch survives this."""
    for block in blocks:
        cuda.fill16(block.address, pattern, block.mapped or block.nbytes & ~1, stream)


def _base(array: dict[str, Any]) -> int:
    """Start of the plan's buffer in the file: the array's own offset rounded down to the recorded alignment."""
    return int(array["offset"]) // ALIGN * ALIGN


def window(array: dict[str, Any], exact: bool) -> tuple[int, int]:
    """Which bytes of the file go to the device: (start, count)."""
    if not exact:
        return 0, int(array["nbytes"])
    return _base(array), int(array["offset"]) - _base(array) + span_bytes(array)


def _sums(cuda: Cuda, arena: Arena, own: OwnKernels, stream: c_void_p,
          inputs: list[tuple[str, int, int]]) -> list[int]:
    """A fingerprint of every input as it lies on the device, with the bytes behind its last whole word."""
    ledger = arena.allocate(8 * max(1, len(inputs)))
    cuda.fill16(ledger.address, 0, 8 * max(1, len(inputs)), stream)
    for number, (_, address, count) in enumerate(inputs):
        own.fingerprint(stream, address, count, ledger.address + 8 * number)
    cuda.wait(stream)
    words = (ctypes.c_ulonglong * max(1, len(inputs)))()
    cuda.download(words, ledger.address, 8 * len(words))
    arena.free([ledger])
    tails = []
    for _, address, count in inputs:
        tail = (ctypes.c_char * (count % 16))()
        if count % 16:
            cuda.download(tail, address + count - count % 16, count % 16)
        tails.append(int.from_bytes(bytes(tail), "little"))
    return [(word << 128) | tail for word, tail in zip(words, tails, strict=False)]
