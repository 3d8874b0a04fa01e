"""Two evaluations on one device: while one has it, the other records, proves and compiles; never do both have it."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from harness.backends.triton.device import plans
from harness.evaluation.ports import Announced
from harness.operators.implementation import Tensors
from tests.harness.device.fakes import FakeDevice, binaries_without_compiler, honest
from tests.harness.device.runs import device_run
from tests.harness.device.test_device_worker import ATTRIBUTES, NORM, lend

PATIENCE_S = 30.0


class Crossing:
    """What the device and the compiler met, and the one moment that proves the overlap."""

    def __init__(self) -> None:
        self.on_device = self.most = 0
        self.first_has_it, self.second_compiled = threading.Event(), threading.Event()
        self.compiled_meanwhile = False
        self._lock = threading.Lock()

    def kernels(self, device: FakeDevice, inputs: Tensors, outputs: Tensors, drop: int | None) -> None:
        """A call of whichever evaluation has the device: the first one lasts until the other has compiled."""
        with self._lock:
            self.on_device += 1
            self.most = max(self.most, self.on_device)
        self.first_has_it.set()
        assert self.second_compiled.wait(PATIENCE_S), "nothing was compiled while the device was taken"
        honest(device, inputs, outputs, drop)
        with self._lock:
            self.on_device -= 1

    def compile(self, *arguments: Any, **more: Any) -> Any:
        """The compiler: the second evaluation gets here while the first one's kernels run."""
        if self.first_has_it.is_set():
            self.compiled_meanwhile = self.on_device == 1
            self.second_compiled.set()
        return binaries_without_compiler(*arguments, **more)


def test_one_compiles_while_the_other_has_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    crossing = Crossing()
    runs = [device_run(monkeypatch, NORM, crossing.kernels)[0] for _ in range(2)]
    monkeypatch.setattr(plans, "binaries_of", crossing.compile)
    first, second = (run.open_workers("triton-device").open() for run in runs)
    done: list[str] = []

    def evaluate(name: str, worker: Any, behind: threading.Event | None) -> None:
        if behind is not None:
            assert behind.wait(PATIENCE_S)
        worker.load("source")
        worker.prepare([Announced({"rows": 3, "cols": 40}, ATTRIBUTES, "bfloat16")])
        with lend() as lending:
            worker.call(lending.lent, ATTRIBUTES)
        worker.close()
        done.append(name)

    threads = [threading.Thread(target=evaluate, args=("first", first, None)),
               threading.Thread(target=evaluate, args=("second", second, crossing.first_has_it))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * PATIENCE_S)
    assert sorted(done) == ["first", "second"]
    assert crossing.compiled_meanwhile
    assert crossing.most == 1
    assert all(run.clocks["device_held_s"] > 0 for run in runs)
