"""Calls and timing rounds on a simulated device: what kernels may see, what is poisoned, what is kept."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from harness.backends.triton.launcher import program
from harness.backends.triton.launcher.driver import CudaError
from harness.backends.triton.launcher.program import Launcher
from harness.backends.triton.launcher.refused import PlanRefused
from harness.evaluation.poison import output_poison
from tests.harness.launcher.fake_cuda import UNIT, FakeCuda, Memory

ROWS, COLS = 4, 64
COUNT = ROWS * COLS
BAND = 65_536
NBYTES = 2 * BAND + 4 * COUNT
TABLE = 101


def double(memory: Memory, values: list[int], grid: tuple[int, ...]) -> None:
    """out = 2 x"""
    assert grid == (ROWS, 1, 1)
    memory.array(values[1], "float32", COUNT)[:] = 2 * memory.array(values[0], "float32", COUNT)


def remember(memory: Memory, values: list[int], grid: tuple[int, ...]) -> None:
    """Computes only where its scratch does not say that it did before."""
    note = memory.array(values[2], "uint32", 1)
    if note[0] != 12345:
        double(memory, values, grid)
        note[0] = 12345


def write_input(memory: Memory, values: list[int], grid: tuple[int, ...]) -> None:
    """Changes the last element of its input."""
    double(memory, values, grid)
    memory.array(values[0], "float32", COUNT)[-1] = 7.0


def run_wild(memory: Memory, values: list[int], grid: tuple[int, ...]) -> None:
    """Writes far behind its output."""
    memory.array(values[1] + (8 << 20), "float32", 1)[:] = 1.0


SEEN: list[bytes] = []


def look_around(memory: Memory, values: list[int], grid: tuple[int, ...]) -> None:
    """Notes what lies around its arrays, up to the ends of their granules."""
    around = []
    for value in values[:2]:
        start = value - BAND
        whole = memory.array(start, "uint8", -(-NBYTES // UNIT) * UNIT).tobytes()
        around += [whole[BAND - 1024 : BAND], whole[BAND + 4 * COUNT :][:1024], whole[-1024:]]
    SEEN.append(b"".join(around))
    double(memory, values, grid)


def _straying(number: int, distance: int) -> Any:
    def kernel(memory: Memory, values: list[int], grid: tuple[int, ...]) -> None:
        double(memory, values, grid)
        memory.array(values[number] + distance, "float32", 1)[:] = 1.0
    return kernel


KERNELS = {"look_around": look_around, "stray": _straying(1, 4 * COUNT + 256), "stray_before": _straying(1, -1024),
           "stray_beside_input": _straying(0, 4 * COUNT + 65_000),
           "double": double, "remember": remember, "write_input": write_input, "run_wild": run_wild}


def plan_of(*functions: str) -> dict[str, Any]:
    """A plan that launches the functions one after the other."""
    array = {"bytes": 4 * COUNT, "align": 512, "shape": [ROWS, COLS], "strides": [COLS, 1], "dtype": "float32"}
    args = [{"buffer": 0, "offset": 0}, {"buffer": 1, "offset": 0}, {"buffer": 2, "offset": 0}]
    return {
        "target": "cuda:90", "compiler": "triton 3.7.1", "second_call": "same",
        "buffers": [{"id": 0, "kind": "input", **array}, {"id": 1, "kind": "output", **array},
                    {"id": 2, "kind": "scratch", "bytes": 64, "align": 512, "shape": [16], "strides": [1],
                     "dtype": "int32"}],
        "steps": [{"launch": {"function": name, "grid": [ROWS, 1, 1], "num_ctas": 1, "cooperative": False,
                              "pdl": False, "args": args}} for name in functions],
    }


def binaries(*functions: str) -> list[dict[str, Any]]:
    return [{"symbol": name, "cubin": "AAAA", "num_warps": 4, "num_ctas": 1, "shared_bytes": 0} for name in functions]


ARRAYS = [{"name": "x", "kind": "input"}, {"name": "out", "kind": "output"}]
for _array in ARRAYS:
    _array.update(dtype="float32", shape=[ROWS, COLS], strides=[COLS, 1], offset=BAND, nbytes=NBYTES)


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> FakeCuda:
    fake = FakeCuda(KERNELS, {name: [8, 8, 8] for name in KERNELS})
    monkeypatch.setattr(program, "Cuda", lambda index: fake)
    fake.attempt = _tolerant(fake)  # type: ignore[method-assign]
    return fake


def _tolerant(fake: FakeCuda) -> Any:
    original = fake.attempt
    return lambda name, *arguments: 0 if name == "cuCtxSetLimit" else original(name, *arguments)


@pytest.fixture
def launcher(cuda: FakeCuda) -> Launcher:
    return Launcher(0, exact=False)


class Files:
    """Memory files as the judge lends them."""

    def __init__(self) -> None:
        self.x = np.arange(COUNT, dtype=np.float32) + 1
        self.fds = [self._file(self.x), self._file(np.full(COUNT, -5, np.float32))]

    def _file(self, values: np.ndarray) -> int:
        fd = os.memfd_create("array")
        os.write(fd, b"\xee" * BAND + values.tobytes() + b"\xee" * BAND)
        return fd

    @property
    def lent(self) -> list[int]:
        return [os.dup(fd) for fd in self.fds]

    def out(self) -> tuple[bytes, np.ndarray, bytes]:
        data = os.pread(self.fds[1], NBYTES, 0)
        return data[:BAND], np.frombuffer(data[BAND:-BAND], np.float32), data[-BAND:]


@pytest.fixture
def files() -> Iterator[Files]:
    made = Files()
    yield made
    for fd in made.fds:
        os.close(fd)


def call(launcher: Launcher, files: Files, *functions: str, drop: int | None = None) -> dict[str, Any]:
    handle = launcher.answer({"op": "load", "document": plan_of(*functions), "binaries": binaries(*functions)}, [])
    request = {"op": "call", "plan": handle["plan"], "arrays": ARRAYS, "drop": drop, "poison": 0x7ABC}
    return launcher.answer(request, files.lent)


def test_call_computes_and_leaves_the_guards(launcher: Launcher, files: Files, cuda: FakeCuda) -> None:
    assert call(launcher, files, "double")["changed"] == []
    before, values, after = files.out()
    assert np.array_equal(values, 2 * files.x)
    assert (before, after) == (b"\xee" * BAND, b"\xee" * BAND)
    assert not cuda.memory.ranges  # everything was given back


def test_call_names_a_changed_input(launcher: Launcher, files: Files) -> None:
    assert call(launcher, files, "write_input")["changed"] == ["x"]


def test_scratch_does_not_survive_between_calls(launcher: Launcher, files: Files) -> None:
    call(launcher, files, "remember")
    files.x += 1
    os.pwrite(files.fds[0], files.x.tobytes(), BAND)
    call(launcher, files, "remember")
    assert np.array_equal(files.out()[1], 2 * files.x)


def test_a_dropped_launch_leaves_the_poison(launcher: Launcher, files: Files) -> None:
    call(launcher, files, "double", drop=0)
    assert (files.out()[1] == -5).all()


def test_a_wild_store_is_an_illegal_address(launcher: Launcher, files: Files) -> None:
    with pytest.raises(CudaError) as caught:
        call(launcher, files, "run_wild")
    assert (caught.value.fault, caught.value.dead) == ("illegal_address", True)


def test_arrays_have_to_be_those_of_the_recording(launcher: Launcher, files: Files) -> None:
    handle = launcher.answer({"op": "load", "document": plan_of("double"), "binaries": binaries("double")}, [])
    other = [{**ARRAYS[0], "strides": [COLS + 1, 1]}, ARRAYS[1]]
    with pytest.raises(PlanRefused, match="not the one of the recording"):
        launcher.answer({"op": "call", "plan": handle["plan"], "arrays": other, "drop": None, "poison": 1}, files.lent)


def test_a_binary_for_another_device_is_refused(launcher: Launcher) -> None:
    import base64

    row = {**binaries("double")[0], "cubin": base64.b64encode(b"not for this device").decode()}
    with pytest.raises(PlanRefused, match="does not load here"):
        launcher.answer({"op": "load", "document": plan_of("double"), "binaries": [row]}, [])


def test_health(launcher: Launcher) -> None:
    assert launcher.answer({"op": "health"}, []) == {"healthy": True}


def sweep(slots: list[int], starts: list[int], keeps: list[dict[str, Any]]) -> dict[str, Any]:
    return {"slots": slots, "starts": starts, "order": ["other", "candidate"], "poison": 0x7ABC, "kept_side":
            "candidate", "keeps": keeps, "flush": True}


def run_round(launcher: Launcher, files: Files, candidate: str, sweeps: list[dict[str, Any]],
              renewed: tuple[str, ...] = ("x",)) -> tuple[Any, Any, bytes]:
    """The answer, the factor table and the kept bytes."""
    handles = {}
    for side, name in (("candidate", candidate), ("other", "double")):
        answer = launcher.answer({"op": "load", "document": plan_of(name), "binaries": binaries(name)}, [])
        handles[side] = answer["plan"]
    table = np.random.default_rng(1).uniform(0.75, 1, TABLE).astype(np.float32)
    factors, kept = os.memfd_create("factors"), os.memfd_create("kept")
    os.write(factors, table.tobytes())
    request = {"op": "round", "arrays": ARRAYS, "renewed": list(renewed), "factor_count": TABLE, "sides": handles,
               "slots": 4, "spacer": 4096, "sweeps": sweeps}
    answer = launcher.answer(request, [factors, *files.lent, os.dup(kept)])
    data = os.pread(kept, 1 << 20, 0)
    os.close(kept)
    return answer, table, data


def keep(slot: int) -> dict[str, Any]:
    return {"output": "out", "slot": slot, "offset": 0, "count": 4 * COUNT}


def test_round_keeps_what_the_candidate_made_of_new_contents(launcher: Launcher, files: Files) -> None:
    sweeps = [sweep([0, 2], [5, 90], [keep(2)]), sweep([1], [33], [keep(1)])]
    answer, table, data = run_round(launcher, files, "double", sweeps)
    assert answer["us"] == {"candidate": [1.0, 1.0], "other": [1.0, 1.0]}
    assert answer["late"] == []
    for place, start in ((0, 90), (1, 33)):
        contents = files.x * table[(start + np.arange(COUNT)) % TABLE]
        got = np.frombuffer(data[4 * COUNT * place : 4 * COUNT * (place + 1)], np.float32)
        assert np.array_equal(got, 2 * contents)


def test_caches_are_written_full_and_then_read_full_of_something_else_before_a_sample(
        launcher: Launcher, files: Files, cuda: FakeCuda) -> None:
    cuda.log.clear()
    run_round(launcher, files, "double", [sweep([0], [5], [])])
    places = [place for place, entry in enumerate(cuda.log) if entry[0] == "read"]
    assert len(places) >= 2
    for place in places:
        size = cuda.log[place][1]
        assert isinstance(size, int) and size >= 2 * launcher.l2_bytes
        assert cuda.log[place + 1][0] == "event"


def test_what_is_remembered_in_scratch_shows_as_unwritten_output(launcher: Launcher, files: Files) -> None:
    _, _, data = run_round(launcher, files, "remember", [sweep([0, 2], [5, 90], [keep(2)])])
    poison = np.frombuffer(output_poison("float32", 0x7ABC).to_bytes(2, "little") * 2, np.float32)[0]
    assert (np.frombuffer(data[: 4 * COUNT], np.float32) == poison).all()


def test_no_kernel_sees_first_contents_factors_kept_outputs_or_the_other_side(launcher: Launcher, files: Files,
                                                                              cuda: FakeCuda) -> None:
    seen: list[set[int]] = []

    def look(memory: Memory, values: list[int], grid: tuple[int, ...]) -> None:
        seen.append(set(memory.ranges) - memory.hidden)
        double(memory, values, grid)

    cuda.kernels["double"] = look
    run_round(launcher, files, "double", [sweep([0], [5], [keep(0)])])
    round_ = launcher._round
    assert round_ is not None
    secret = {block.address for block in round_._vault}
    scratch = {name: {block.address for block in side.scratch} for name, side in round_._sides.items()}
    assert len(seen) == 4  # one warm-up and one sample of each side
    for visible in seen:
        assert not visible & secret
        assert sum(bool(visible & blocks) for blocks in scratch.values()) == 1


def test_an_input_that_one_side_wrote_to_is_restored_for_the_other(launcher: Launcher, files: Files) -> None:
    orders = (["candidate", "other"], ["other", "candidate"], ["candidate", "other"])
    sweeps = [{**sweep([slot], [0], [keep(slot)]), "order": order, "kept_side": "other"}
              for slot, order in enumerate(orders)]
    _, _, data = run_round(launcher, files, "write_input", sweeps, renewed=())
    for place in range(3):
        got = np.frombuffer(data[4 * COUNT * place : 4 * COUNT * (place + 1)], np.float32)
        assert np.array_equal(got, 2 * files.x)


def test_sealed_contents_are_uploaded_once_and_hidden_from_other_rounds(launcher: Launcher, cuda: FakeCuda) -> None:
    import fcntl

    def sealed(values: np.ndarray) -> int:
        fd = os.memfd_create("sealed", os.MFD_ALLOW_SEALING)
        os.write(fd, b"\xee" * BAND + values.tobytes() + b"\xee" * BAND)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
        return fd

    def block(fd: int) -> Any:
        return launcher.contents.keep(os.dup(fd), BAND, 4 * COUNT)

    one, two = sealed(np.ones(COUNT, np.float32)), sealed(np.full(COUNT, 2, np.float32))
    first, second = block(one), block(two)
    assert block(one) is first is not second
    assert (cuda.memory.array(second.address, "float32", COUNT) == 2).all()
    launcher.contents.hide_all_but([second])
    assert first.address in cuda.memory.hidden
    assert second.address not in cuda.memory.hidden
    launcher.forget()
    assert not cuda.memory.ranges
    os.close(one)
    os.close(two)


def test_contents_that_can_still_change_are_not_kept(launcher: Launcher, files: Files) -> None:
    fd = os.dup(files.fds[0])
    assert launcher.contents.keep(fd, BAND, 4 * COUNT) is None
    os.close(fd)


def test_an_input_written_under_the_clock_is_named_to_the_last_element(launcher: Launcher, files: Files) -> None:
    answer, _, _ = run_round(launcher, files, "write_input", [sweep([0, 2], [5, 90], [])])
    assert answer["written"] == [("candidate", 0)]
    answer, _, _ = run_round(launcher, files, "double", [sweep([0, 2], [5, 90], [])])
    assert answer["written"] == []


def test_what_surrounds_the_arrays_is_the_same_in_a_call_and_under_the_clock(launcher: Launcher, files: Files) -> None:
    SEEN.clear()
    call(launcher, files, "look_around")
    run_round(launcher, files, "look_around", [sweep([0, 2], [5, 90], []), sweep([1], [33], [])])
    (single, *timed) = SEEN
    assert len(timed) > 2
    assert single.count(b"\xee" * 1024) == 4 and single.count(b"\xff" * 1024) == 2
    assert set(timed) == {single}


def test_a_write_outside_the_arrays_under_the_clock_is_named(launcher: Launcher, files: Files) -> None:
    answer, _, _ = run_round(launcher, files, "stray", [sweep([0, 2], [5, 90], [])])
    assert (answer["strayed"], answer["written"]) == ([("candidate", 0)], [])
    answer, _, _ = run_round(launcher, files, "stray_before", [sweep([1], [5], [])])
    assert answer["strayed"] == [("candidate", 0)]
    answer, _, _ = run_round(launcher, files, "stray_beside_input", [sweep([1], [5], [])])
    assert (answer["strayed"], answer["written"]) == ([("candidate", 0)], [])


def test_slope_counts_calls_and_the_round_ends(launcher: Launcher, files: Files, cuda: FakeCuda) -> None:
    run_round(launcher, files, "double", [sweep([0], [5], [])])
    assert launcher.answer({"op": "slope", "side": "candidate", "times": 3}, [])["calls"] == 12
    launcher.answer({"op": "end_round"}, [])
    assert not cuda.memory.ranges


def test_a_late_write_is_noticed(launcher: Launcher, files: Files, cuda: FakeCuda) -> None:
    original = cuda.wait

    def wait(stream: Any) -> None:
        """The device writes once more after the mark: into the first output it can find."""
        original(stream)
        round_ = launcher._round
        if round_ is not None and cuda.log[-2:-1] == [("event",)]:
            cuda.memory.array(round_._address(1, 0) + 64, "float32", 1)[:] += 1

    cuda.wait = wait  # type: ignore[method-assign]
    monkey_round(launcher)
    answer, _, _ = run_round(launcher, files, "double", [sweep([0], [5], [])])
    assert answer["late"] == [("other", 0), ("candidate", 0)]


def monkey_round(launcher: Launcher) -> None:
    """Let the launcher know its round while it runs, as the hook above needs it."""
    original = program.Round

    class Known(original):  # type: ignore[misc, valid-type]
        def run(self) -> dict[str, Any]:
            launcher._round = self
            return super().run()

    program.Round = Known  # type: ignore[misc]


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    original = program.Round
    yield
    program.Round = original  # type: ignore[misc]


def test_structures_have_the_driver_s_sizes() -> None:
    from harness.backends.triton.launcher.driver import AccessDescription, AllocationProperties, Attribute, LaunchConfig

    assert ctypes.sizeof(Attribute) == 72
    assert LaunchConfig.stream.offset == 32
    assert ctypes.sizeof(AllocationProperties) == 32
    assert ctypes.sizeof(AccessDescription) == 12
