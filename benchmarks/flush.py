"""What a flush of the caches leaves behind for the next kernel: written lines against read ones, in pairs.

Run from the repository root on a GPU host: ``python benchmarks/flush.py``. Before each sample twice the L2 cache is
written, as everybody does it; in every second one twice the cache is read afterwards. A kernel that reads much meets a
cache full of lines that have to be written back in the first case, and the time of it is charged to the kernel.
"""

from __future__ import annotations

import random
import statistics
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.series import facts
from harness.hardware import exclusive
from harness.hardware.gpu import gpu_name

MEGABYTES = (8, 32, 128, 512)
PAIRS, WARM_UP = 60, 5
LOCK_S = 600.0
SPIN = 200_000
"""Cycles that the device is kept busy while the host enqueues a sample."""


def main() -> None:
    """Measure and print."""
    import torch

    if not torch.cuda.is_available():
        raise SystemExit("There is no CUDA device here; run it on a GPU host.")
    cache = int(torch.cuda.get_device_properties(0).L2_cache_size)
    written, clean = (torch.zeros(2 * cache // 4, dtype=torch.int32, device="cuda") for _ in range(2))
    total = torch.empty((), dtype=torch.int64, device="cuda")

    def write() -> None:
        written.zero_()

    def write_and_read() -> None:
        written.zero_()
        torch.sum(clean, dim=0, dtype=torch.int64, out=total)

    print(f"{torch.cuda.get_device_name(0)}, L2 {cache / 2**20:.0f} MiB, {PAIRS} pairs in random order, medians\n")
    print(f"{'kernel':16} {'written':>12} {'then read':>12} {'ratio':>7}   {'p10 to p90':>15}")
    with exclusive.device(gpu_name() or "cuda", LOCK_S):
        for megabytes in MEGABYTES:
            source = torch.ones(megabytes << 18, dtype=torch.float32, device="cuda")
            target, found = torch.empty_like(source), torch.empty((), device="cuda")
            for name, work in (("read", partial(torch.sum, source, dim=0, out=found)),
                               ("copy", partial(target.copy_, source)), ("write", partial(target.fill_, 1.0))):
                _line(f"{name} {megabytes} MiB", _captured(torch, work), write, write_and_read, torch)
    print("\n" + ", ".join(f"{key} {value}" for key, value in facts(("torch",), kind="flush").items() if key != "kind"))


def _captured(torch: Any, work: Callable[[], object]) -> Callable[[], None]:
    work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay  # type: ignore[no-any-return]


def _line(name: str, replay: Callable[[], None], write: Callable[[], None], read: Callable[[], None],
          torch: Any) -> None:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    us: dict[str, list[float]] = {"write": [], "read": []}
    for number in range(PAIRS + WARM_UP):
        for form in random.sample(["write", "read"], 2):
            torch.cuda._sleep(SPIN)
            (write if form == "write" else read)()
            start.record()
            replay()
            end.record()
            end.synchronize()
            if number >= WARM_UP:
                us[form].append(1e3 * start.elapsed_time(end))
    ratios = sorted(one / other for one, other in zip(us["write"], us["read"], strict=True))
    print(f"{name:16} {statistics.median(us['write']):9.2f} us {statistics.median(us['read']):9.2f} us "
          f"{statistics.median(ratios):7.3f}   {ratios[len(ratios) // 10]:.3f} to {ratios[-1 - len(ratios) // 10]:.3f}",
          flush=True)


if __name__ == "__main__":
    main()
