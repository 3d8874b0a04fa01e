"""The matmul roof: measured by a program of its own, kept by environment class, and what figures make of it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.backends.triton.targets import TARGETS, residency
from harness.domain.samples import PairedRound, Samples, ShapeSamples
from harness.domain.vocabulary import Evidence
from harness.evaluation.timing import figures
from harness.evaluation.timing.record import Record
from harness.hardware import matmul, matmul_program
from harness.hardware.matmul import MatmulRoof, matmul_roof, read_answer

CLASS = "nvidia-h200/driver-580/triton-3.7/eval-1.0"


@pytest.fixture(autouse=True)
def _var(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNELOPT_VAR", str(tmp_path))


def measuring(*rates: float | None):
    left = list(rates)
    return lambda: MatmulRoof(rate, f"measured {rate:g}") if (rate := left.pop(0)) else MatmulRoof(None, "no library")


def test_it_is_measured_once_and_never_falls():
    measure = measuring(7e14, 6e14, 7.5e14)
    assert matmul_roof(CLASS, measure=measure).flops == 7e14
    assert matmul_roof(CLASS, measure=measure).flops == 7e14  # kept
    assert matmul_roof(CLASS, afresh=True, measure=measure) == MatmulRoof(7e14, "measured 7e+14")
    assert matmul_roof(CLASS, afresh=True, measure=measure).flops == 7.5e14
    assert matmul_roof(CLASS, measure=measuring()).flops == 7.5e14
    assert matmul_roof("another/class", measure=measuring(1e14)).flops == 1e14


def test_what_could_not_be_measured_says_why_and_is_tried_again():
    assert matmul_roof(CLASS, measure=measuring(None)) == MatmulRoof(None, "no library")
    assert matmul_roof(CLASS, measure=measuring(7e14)).flops == 7e14


@pytest.mark.parametrize("answer", [[], {}, {"flops": "fast"}, {"flops": 0.0}, {"flops": -1e14}, {"flops": True},
                                    {"flops": float("nan")}, {"flops": 1e18}])
def test_senseless_rates_are_no_roof(answer, tmp_path):
    with pytest.raises(ValueError, match="it"):
        read_answer(answer)
    kept = tmp_path / "roofs" / f"{CLASS.replace('/', '_')}.matmul.json"
    kept.parent.mkdir()
    kept.write_text(json.dumps(answer))
    assert matmul_roof(CLASS, measure=measuring(7e14)).flops == 7e14


def test_only_half_precision_counts_at_the_measured_rate():
    roof = MatmulRoof(7e14, "cuBLAS")
    assert (roof.rate("bfloat16"), roof.rate("float16"), roof.rate("float32")) == (7e14, 7e14, None)


def test_a_host_without_a_device_says_so():
    done = subprocess.run([sys.executable, "-I", "-B", str(matmul.PROGRAM), '{"index": 4096}'], capture_output=True,
                          text=True, check=True)
    assert read_answer(json.loads(done.stdout)).flops is None


class Blas:
    """A cuBLAS that only counts."""

    def __init__(self, status: int = 0):
        self.status, self.products = status, 0

    def cublasCreate_v2(self, handle):
        return 0

    def cublasGetVersion_v2(self, handle, number):
        number._obj.value = 120_804
        return 0

    def cublasGemmEx(self, *arguments):
        self.products += 1
        return self.status


class Driver:
    """A device that takes a millisecond between two events, whatever lies between them, and computes ``word``."""

    def __init__(self, index, word=1):
        self.word = word

    def __call__(self, name, *arguments):
        if name == "cuMemcpyDtoH_v2":
            arguments[0]._obj.value = self.word

    def memory(self, nbytes):
        import ctypes

        return ctypes.c_ulonglong(4096)

    def event(self):
        return object()

    def elapsed_s(self, start, end):
        return 1e-3


def test_the_program_takes_the_best_size(monkeypatch):
    blas = Blas()
    monkeypatch.setattr(matmul_program, "Driver", Driver)
    monkeypatch.setattr(matmul_program, "library", lambda: blas)
    monkeypatch.setattr(matmul_program, "_fill", lambda *_: None)
    found = matmul_program.measured(0)
    rates = {size: 2.0 * size**3 * times / 1e-3 for size, times in matmul_program.SIZES.items()}
    assert found["flops"] == pytest.approx(max(rates.values()))
    assert found["origin"] == f"cuBLAS 12.8.4, bfloat16, {max(rates, key=rates.get)} cubed"
    assert blas.products == (matmul_program.SAMPLES + 1) * sum(matmul_program.SIZES.values())


def test_a_product_that_failed_or_wrote_nothing_is_no_roof(monkeypatch):
    monkeypatch.setattr(matmul_program, "_fill", lambda *_: None)
    monkeypatch.setattr(matmul_program, "Driver", Driver)
    monkeypatch.setattr(matmul_program, "library", lambda: Blas(status=13))
    with pytest.raises(matmul_program.Failed, match="status 13"):
        matmul_program.measured(0)
    monkeypatch.setattr(matmul_program, "library", Blas)
    monkeypatch.setattr(matmul_program, "Driver", lambda index: Driver(index, word=matmul_program.UNTOUCHED))
    with pytest.raises(matmul_program.Failed, match="untouched"):
        matmul_program.measured(0)


def timing_of(us: float, work: figures.Work):
    rounds = tuple(PairedRound((us,) * 4, (us,) * 4) for _ in range(5))
    shape = ShapeSamples("s", 1.0, {"baseline": rounds}, rounds, (us,), us, {"candidate": (us,)}, {})
    return figures.timing_of(Samples((shape,)), {"s": work}, evidence=Evidence.BOUNDED, longer=False)


def test_shares_of_each_roof_are_the_achieved_rates():
    work = figures.Work(4_000_000, 10**9, floor_s=1e-6, least_s=1e-6, rates=figures.Rates(4e12, 5e12, 2e15))
    (shape,) = timing_of(2.0, work).shapes
    assert shape.copy_share == pytest.approx(0.5) and shape.read_share == pytest.approx(0.4)
    assert shape.matmul_share == pytest.approx(0.25)
    (bare,) = timing_of(2.0, figures.Work(1, 1, 1e-6, 1e-6)).shapes
    assert (bare.copy_share, bare.read_share, bare.matmul_share) == (None, None, None)


@pytest.mark.parametrize(("us", "suspicious", "impossible"), [(100.0, False, False), (92.0, True, False),
                                                              (80.0, True, False), (60.0, True, True)])
def test_beating_the_measured_matmul_is_suspicious_and_beating_the_datasheet_impossible(us, suspicious, impossible):
    work = {"s": figures.Work(1, 1, floor_s=100e-6, least_s=75e-6, doubtful_s=100e-6)}
    timing = timing_of(us, work["s"])
    assert bool(figures.impossible(timing, work)) is impossible
    assert (bool(figures.suspicious(timing, work, Record())) or impossible) is suspicious


TARGET = TARGETS["nvidia-h200"]


@pytest.mark.parametrize(("registers", "warps", "shared", "limiter", "blocks"), [
    (32, 4, 0, "warps", 16), (255, 8, 0, "registers", 1), (32, 4, TARGET.shared_optin, "shared memory", 1),
    (16, 1, 0, "blocks", 32),
])
def test_the_limiter_of_the_occupancy_is_named(registers, warps, shared, limiter, blocks):
    found = residency(TARGET, registers=registers, warps=warps, shared_bytes=shared)
    assert (found.limiter, found.blocks) == (limiter, blocks)


@given(st.integers(1, 255), st.sampled_from((1, 2, 4, 8, 16, 32)), st.integers(0, TARGET.shared_optin))
def test_more_of_anything_never_raises_the_residency(registers, warps, shared):
    found = residency(TARGET, registers=registers, warps=warps, shared_bytes=shared)
    assert 0 <= found.occupancy <= 1 and found.blocks <= TARGET.blocks_per_sm
    for more in ({"registers": registers + 8}, {"shared_bytes": shared + 4096}):
        asked = {"registers": registers, "warps": warps, "shared_bytes": shared} | more
        assert residency(TARGET, **asked).blocks <= found.blocks
