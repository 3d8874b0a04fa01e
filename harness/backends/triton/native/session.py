"""The native run itself: import the candidate, call it on real tensors, watch what is launched, time the host."""

from __future__ import annotations

import mmap
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness.backends.triton.native.capture import Capture, Memory

ALIGNMENT = 512


def run_native(request: Mapping[str, Any], driver: Any, device: str, wait: Callable[[], None]) -> dict[str, Any]:
    """Call the candidate of ``request`` twice watched, then ``calls`` times on the clock.

    ``wait`` returns when the device is idle. The answer holds ``calls`` (two lists of launches), ``first_call_s``
    (compilation included) and ``host_us``: the median time from the call to its last kernel's end, device idle before.
    Whatever the candidate raises passes through.
    """
    from harness.backends.triton.candidate import import_candidate

    run = import_candidate(request["source"]).run
    wholes, arguments = _tensors(request["arguments"], device)
    attributes = dict(request["attributes"])
    capture = Capture(driver, Memory(wholes))
    watched = []
    seconds = []
    for _ in range(2):
        capture.begin()
        wait()
        began = time.perf_counter()
        run(*arguments, **attributes)
        wait()
        seconds.append(time.perf_counter() - began)
        watched.append(capture.launches)
    capture.stop()
    times = []
    for _ in range(int(request["calls"])):
        wait()
        began = time.perf_counter()
        run(*arguments, **attributes)
        wait()
        times.append(time.perf_counter() - began)
    host_us = statistics.median(times) * 1e6 if times else None
    return {"calls": watched, "first_call_s": seconds[0], "host_us": host_us}


def _tensors(documents: Sequence[Mapping[str, Any]], device: str) -> tuple[list[Any], list[Any]]:
    """Whole allocations, each aligned as the recorder assumed, and the arrays in them."""
    import torch

    wholes, arrays = [], []
    for item in documents:
        dtype = getattr(torch, item["dtype"])
        size = torch.empty(0, dtype=dtype).element_size()
        shift = item["offset"] % ALIGNMENT // size
        span = 1 + sum((n - 1) * s for n, s in zip(item["shape"], item["strides"], strict=True))
        with mmap.mmap(item["fd"], item["nbytes"], prot=mmap.PROT_READ) as memory:
            # A writable copy, as torch wants it; memory files of inputs are sealed.
            given = torch.frombuffer(bytearray(memory[item["offset"]:item["offset"] + span * size]), dtype=dtype)
        whole = torch.empty(shift + span, dtype=dtype, device=device)
        whole[shift:].copy_(given)
        wholes.append(whole)
        arrays.append(whole.as_strided(item["shape"], item["strides"], shift))
    return wholes, arrays
