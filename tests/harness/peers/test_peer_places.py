"""The order of things around a sample on a GPU, on a stand-in for torch.cuda that notes it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from harness.peers import places


class Cuda:
    """Notes what is enqueued; a graph captures the calls made between its two ends."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.capturing = False

    def get_device_properties(self, index: int) -> Any:
        return SimpleNamespace(L2_cache_size=4096, total_memory=1 << 30)

    def Event(self, enable_timing: bool) -> Any:
        name = "start" if "made start" not in self.log else "end"
        self.log.append(f"made {name}")
        return SimpleNamespace(record=lambda: self.log.append(name), synchronize=lambda: self.log.append("wait"),
                               elapsed_time=lambda other: 0.25)

    def Stream(self) -> Any:
        return SimpleNamespace(synchronize=lambda: self.log.append("aside done"))

    @contextlib.contextmanager
    def stream(self, which: Any) -> Iterator[None]:
        self.log.append("aside")
        yield

    def CUDAGraph(self) -> Any:
        def begin(pool: Any, capture_error_mode: str) -> None:
            self.capturing = True
            self.log.append(f"capture in {pool} {capture_error_mode}")

        def end() -> None:
            self.capturing = False

        return SimpleNamespace(capture_begin=begin, capture_end=end, replay=lambda: self.log.append("replay"))

    def graph_pool_handle(self) -> str:
        return "pool"

    def synchronize(self) -> None:
        self.log.append("synchronize")

    def empty_cache(self) -> None:
        self.log.append("empty")

    def _sleep(self, cycles: int) -> None:
        self.log.append("spin")


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Cuda:
    stand_in, empty, zeros = Cuda(), torch.empty, torch.zeros
    monkeypatch.setattr(torch, "cuda", stand_in)
    monkeypatch.setattr(torch, "empty", lambda *size, device=None, **more: empty(*size, **more))
    monkeypatch.setattr(torch, "zeros", lambda *size, device=None, **more: zeros(*size, **more))
    return stand_in


def noted(cuda: Cuda, name: str) -> Any:
    def call() -> dict[str, torch.Tensor]:
        cuda.log.append(f"{'captured' if cuda.capturing else 'called'} {name}")
        return {"out": torch.zeros(4)}
    return call


def flushed(gpu: places.Gpu, cuda: Cuda) -> None:
    gpu.flush = SimpleNamespace(zero_=lambda: cuda.log.append("write"))  # type: ignore[assignment]
    gpu.read_clean = lambda: cuda.log.append("read")  # type: ignore[method-assign]


def test_only_the_graph_lies_between_the_events_and_caches_are_flushed_before(cuda: Cuda) -> None:
    gpu = places.Gpu()
    assert gpu.flush.numel() * 4 == gpu.clean.numel() * 4 == 2 * 4096
    gpu.read_clean()
    assert int(gpu.total) == 0
    flushed(gpu, cuda)
    prepared = gpu.prepare([noted(cuda, "one"), noted(cuda, "two")], graph=True, shared=gpu.common())
    cuda.log.clear()
    assert prepared.sample() == 250.0
    assert cuda.log == ["spin", "write", "read", "start", "replay", "end", "wait"]


def test_a_library_is_called_on_the_capturing_stream_before_its_first_capture_and_no_more(cuda: Cuda) -> None:
    gpu = places.Gpu()
    shared = gpu.common()
    gpu.prepare([noted(cuda, "one"), noted(cuda, "two")], graph=True, shared=shared)
    gpu.prepare([noted(cuda, "three")], graph=True, shared=shared)
    assert [entry for entry in cuda.log if "call" in entry or "captur" in entry] == [
        "called one", "capture in pool thread_local", "captured one", "captured two", "capture in pool thread_local",
        "captured three"]
    assert not cuda.capturing


def test_a_failed_capture_is_ended(cuda: Cuda) -> None:
    gpu = places.Gpu()

    def broken() -> dict[str, torch.Tensor]:
        if cuda.capturing:
            raise RuntimeError("a synchronising call")
        return {}

    with pytest.raises(RuntimeError, match="synchronising"):
        gpu.prepare([broken], graph=True, shared=gpu.common())
    assert not cuda.capturing


def test_what_cannot_be_captured_is_called_between_the_events(cuda: Cuda) -> None:
    gpu = places.Gpu()
    flushed(gpu, cuda)
    prepared = gpu.prepare([noted(cuda, "one"), noted(cuda, "two")], graph=False, shared=gpu.common())
    cuda.log.clear()
    prepared.sample()
    assert cuda.log == ["spin", "write", "read", "start", "called one", "called two", "end", "wait"]
    prepared.spoil()


def test_every_captured_call_keeps_outputs_of_its_own_and_all_are_spoiled(cuda: Cuda) -> None:
    gpu = places.Gpu()
    prepared = gpu.prepare([noted(cuda, "one"), noted(cuda, "two")], graph=True, shared=gpu.common())
    prepared.spoil()
    assert prepared.last()["out"].tolist() == [pytest.approx(places.FILL, rel=1e-6)] * 4


@pytest.mark.parametrize(("us", "calls"), [(0.0, 16), (2.7, 16), (20.0, 5), (67.0, 2), (100.0, 1), (5000.0, 1)])
def test_batches_take_about_100_us(cuda: Cuda, us: float, calls: int) -> None:
    assert places.Gpu().batch(us) == calls
