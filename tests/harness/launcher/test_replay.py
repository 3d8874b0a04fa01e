"""The program that repeats plans for a profiler: what it runs, where its marks lie, what it answers."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from harness.backends.triton.launcher import replay
from tests.harness.launcher.fake_cuda import UNIT, FakeCuda, number
from tests.harness.launcher.test_launcher import ARRAYS, BAND, COUNT, KERNELS, NBYTES, binaries, plan_of


class Profiled(FakeCuda):
    """A driver with plain allocations and a profiler's marks."""

    def __init__(self, index: int) -> None:
        super().__init__(KERNELS, {name: [8, 8, 8] for name in KERNELS})

    def _cuMemAlloc_v2(self, address: Any, size: Any) -> None:
        self._next += UNIT
        address._obj.value = self._next
        self.memory.ranges[self._next] = np.zeros(number(size), np.uint8)
        self._next += number(size)

    def _cuMemFree_v2(self, address: Any) -> None:
        del self.memory.ranges[number(address)]

    def _cuProfilerStart(self) -> None:
        self.log.append(("start",))

    def _cuProfilerStop(self) -> None:
        self.log.append(("stop",))


def asked(tmp_path: Any, *functions: str, **changes: Any) -> dict[str, Any]:
    values = np.arange(COUNT, dtype=np.float32)
    path = tmp_path / "x"
    path.write_bytes(b"\xee" * BAND + values.tobytes() + b"\xee" * BAND)
    arrays = [{**array, "path": str(path), "nbytes": NBYTES, **changes} for array in ARRAYS]
    return {"document": plan_of(*functions), "binaries": binaries(*functions), "arrays": arrays}


def answered(request: dict[str, Any]) -> tuple[dict[str, Any], FakeCuda]:
    made: list[FakeCuda] = []

    def open_cuda(index: int) -> FakeCuda:
        made.append(Profiled(index))
        return made[0]

    return replay.answer(request, open_cuda), made[0]  # type: ignore[arg-type]


def test_every_call_runs_once_unseen_and_once_between_the_marks(tmp_path: Any) -> None:
    calls = [asked(tmp_path, "double", "double"), asked(tmp_path, "double")]
    found, cuda = answered({"index": 0, "calls": calls})
    assert found == {"launches": 3}
    seen = [entry for entry in cuda.log if entry[0] in ("kernel", "start", "stop")]
    double = ("kernel", "double")
    assert seen == [double, double, ("start",), double, double, ("stop",), double, ("start",), double, ("stop",)]
    assert not cuda.memory.ranges  # everything was given back


def test_scratch_remembers_nothing_of_the_unseen_call(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []

    def remember(memory: Any, values: list[int], grid: tuple[int, ...]) -> None:
        note = memory.array(values[2], "uint32", 1)
        written.append(int(note[0]))
        note[0] = 12345

    monkeypatch.setitem(KERNELS, "remember", remember)
    answered({"index": 0, "calls": [asked(tmp_path, "remember")]})
    assert len(written) == 2 and 12345 not in written


def test_inputs_are_those_of_the_judges_file(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    met: list[np.ndarray] = []
    monkeypatch.setitem(KERNELS, "look", lambda memory, values, grid: met.append(
        memory.array(values[0], "float32", COUNT).copy()))
    monkeypatch.setattr("tests.harness.launcher.test_replay.KERNELS", KERNELS)
    found, _ = answered({"index": 0, "calls": [asked(tmp_path, "look")]})
    assert found == {"launches": 1}
    assert all(np.array_equal(values, np.arange(COUNT, dtype=np.float32)) for values in met)


@pytest.mark.parametrize(("functions", "changes", "word"), [
    (("run_wild",), {}, "fault"), (("double",), {"strides": [65, 1]}, "refused"),
    (("double",), {"path": "/none"}, "fault"),
])
def test_what_cannot_run_is_answered(functions: tuple[str, ...], changes: dict[str, Any], word: str,
                                     tmp_path: Any) -> None:
    found, _ = answered({"index": 0, "calls": [asked(tmp_path, *functions, **changes)]})
    assert list(found) == [word] and len(found[word]) == 2


def test_a_trial_is_one_launch_of_the_launchers_own(tmp_path: Any) -> None:
    found, cuda = answered({"index": 0, "calls": [asked(tmp_path, "double")], "trial": True})
    assert found == {"launches": 2}
    marks = [entry[0] for entry in cuda.log if entry[0] in ("start", "stop", "kernel")]
    assert marks == ["start", "stop", "kernel", "start", "kernel", "stop"]


def test_without_a_driver_it_says_so() -> None:
    def missing(index: int) -> Any:
        return ctypes.CDLL("libno-such-driver.so.1")

    assert replay.answer({"index": 0, "calls": []}, missing)["fault"][0] == "driver_error"  # type: ignore[arg-type]
