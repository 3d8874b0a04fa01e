"""Who records and who compiles what: a matter of cost alone, so every call and every kernel is dealt out once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.backends.triton.compiler import process
from harness.backends.triton.compiler.process import CompilerProcess, KernelFacts, KernelSource
from harness.backends.triton.device.documents import Documents, documents_of, key_of, kinds_of
from harness.backends.triton.device.plans import _Left
from harness.backends.triton.targets import find_target
from harness.evaluation.ports import Announced
from harness.operators import registry

SPEC = registry.get("rms_norm")
EPS = {"eps": 1e-6}


def call(rows: int, cols: int, dtype: str = "bfloat16", layout="dense") -> tuple[Documents, dict[str, float]]:
    return documents_of(SPEC.arguments, Announced({"rows": rows, "cols": cols}, EPS, dtype, layout)), EPS


def left(*calls: tuple[Documents, dict[str, float]]) -> _Left:
    return _Left({key_of(*one): one for one in calls})


def test_a_planner_is_given_what_is_most_alike_to_what_it_met_and_another_what_nobody_has() -> None:
    first, alike, wider, other = call(17, 64), call(19, 96), call(35, 4096), call(17, 63)
    waiting, one, two = left(first, other, wider, alike), set(), set()
    taken = [waiting.take(mine) for mine in (one, two, one, one, two)]
    assert [found and found[0] for found in taken] == [key_of(*first), key_of(*other), key_of(*alike), key_of(*wider),
                                                       None]


@pytest.mark.parametrize("different", [call(17, 63), call(17, 64, "float32"), call(17, 64, layout="offset"),
                                       call(1, 64)])
def test_calls_whose_code_differs_for_certain_are_of_other_kinds(different) -> None:
    assert not {*kinds_of(*call(17, 64))} & {*kinds_of(*different)}


@given(st.lists(st.tuples(st.integers(1, 40), st.integers(1, 70)), max_size=30, unique=True), st.integers(1, 5))
def test_every_call_is_dealt_out_once(sizes: list[tuple[int, int]], planners: int) -> None:
    waiting, found, lock = left(*(call(*size) for size in sizes)), [], threading.Lock()

    def take() -> None:
        met: set[object] = set()
        while (taken := waiting.take(met)) is not None:
            with lock:
                found.append(taken[0])

    with ThreadPoolExecutor(planners) as pool:
        for done in [pool.submit(take) for _ in range(planners)]:
            done.result()
    assert sorted(found) == sorted(key_of(*call(*size)) for size in sizes)


@pytest.mark.parametrize("kernels", [1, 2, 3, 7, 40])
def test_a_compile_process_has_two_kernels_at_least_where_there_are_two(kernels: int, monkeypatch: pytest.MonkeyPatch
                                                                         ) -> None:
    shares: list[int] = []

    def one_process(self: CompilerProcess, given: list[KernelSource], until: float) -> list[KernelFacts]:
        shares.append(len(given))
        return [KernelFacts(symbol=one.ir) for one in given]

    monkeypatch.setattr(process, "parallel", lambda: 16)
    monkeypatch.setattr(CompilerProcess, "_one_process", one_process)
    sources = [KernelSource(f"kernel {number}", "ttir", {}) for number in range(kernels)]
    facts = CompilerProcess(find_target("nvidia-h200")).compile(sources)
    assert [one.symbol for one in facts] == [one.ir for one in sources]
    assert sum(shares) == kernels and len(shares) == min(16, -(-kernels // 2))
