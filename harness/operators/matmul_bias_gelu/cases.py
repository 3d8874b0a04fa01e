"""Correctness cases of matmul_bias_gelu, written by people, and the wrong kernels that must be refused."""

from __future__ import annotations

from harness.domain.vocabulary import Backend
from harness.operators.base import Case, WrongKernel


def _case(name: str, shape: tuple[int, int, int], regime: str, reason: str, **more: object) -> Case:
    """``shape`` is m, k, n."""
    return Case(name, dict(zip(("m", "k", "n"), shape, strict=True)), regime, reason, **more)  # type: ignore[arg-type]


CASES = (
    _case("37x61x101", (37, 61, 101), "normal", "three primes: a tail in every dimension", smoke=True),
    _case("1x1x1", (1, 1, 1), "normal", "the smallest problem"),
    _case("one row", (1, 300, 257), "normal", "a single row, one column above a power of two"),
    _case("one column", (130, 77, 1), "normal", "a single column"),
    _case("one term", (65, 1, 129), "normal", "an outer product: sums of one term"),
    _case("whole tiles", (128, 256, 128), "normal", "powers of two in every size"),
    _case("one below", (127, 63, 255), "normal", "one below a power of two in every size"),
    _case("one above", (129, 65, 257), "normal", "one above a power of two in every size"),
    _case("long sums", (5, 4099, 19), "normal", "a long reduction of prime length"),
    _case("tall", (1031, 16, 24), "normal", "many rows, few columns"),
    _case("wide result", (3, 32, 2053), "normal", "few rows, many columns"),
    _case("sweep", (48, 8, 512), "sweep", "single terms from -6 to 6: GELU itself, where it bends"),
    _case("large biases", (20, 40, 60), "bias_large", "the bias decides, and GELU saturates on both sides"),
    _case("wide b", (24, 90, 50), "b_wide", "magnitudes from 1e-4 to 1e4 in b"),
    _case("wide a", (24, 300, 50), "wide", "magnitudes from 1e-4 to 1e4 in a"),
    _case("huge", (16, 64, 40), "huge", "the cube inside GELU overflows, the result does not"),
    _case("tiny", (16, 64, 40), "tiny", "sums vanish beside the bias"),
    _case("zeros", (9, 33, 65), "zeros", "zeros of both signs: GELU of the bias"),
    _case("equal", (9, 1000, 33), "equal", "all values of a row of a alike"),
    _case("one hot", (40, 129, 65), "one_hot", "a row of a picks a row of b"),
    _case("spike", (12, 515, 65), "spike", "one term a thousand times larger than the rest"),
    _case("alternating", (6, 2048, 33), "alternating", "large terms of alternating sign nearly cancel"),
    _case("offset", (8, 1500, 40), "offset", "a common offset of 100 in a"),
    _case("large", (8, 400, 40), "large", "values around 1e3: GELU saturates"),
    _case("denormal", (8, 96, 40), "denormal", "two values of a in three are denormal"),
    _case("nan in a", (19, 70, 66), "nan", "a NaN poisons its own row and no other"),
    _case("nan in b", (19, 70, 66), "b_nan", "a NaN poisons its own column and no other"),
    _case("misaligned", (33, 61, 70), "normal", "base addresses are shifted by one element", layout="offset"),
    _case("misaligned tiles", (64, 64, 128), "normal", "whole tiles at shifted base addresses", layout="offset"),
    _case("65,537 rows", (65537, 2, 3), "normal", "more rows than a grid's second axis can count"),
)

INTERPRET_CASES = (
    _case("37x61x101", (37, 61, 101), "normal", "three primes: a tail in every dimension", smoke=True),
    _case("1x1x1", (1, 1, 1), "normal", "the smallest problem"),
    _case("one row", (1, 130, 67), "normal", "a single row"),
    _case("one column", (67, 35, 1), "normal", "a single column"),
    _case("one term", (33, 1, 65), "normal", "an outer product: sums of one term"),
    _case("whole tiles", (64, 64, 64), "normal", "powers of two in every size"),
    _case("one above", (65, 65, 129), "normal", "one above a power of two in every size"),
    _case("long sums", (3, 1031, 17), "normal", "a long reduction of prime length"),
    _case("sweep", (16, 8, 128), "sweep", "single terms from -6 to 6: GELU itself, where it bends"),
    _case("large biases", (12, 20, 40), "bias_large", "the bias decides, and GELU saturates on both sides"),
    _case("huge", (8, 32, 24), "huge", "the cube inside GELU overflows, the result does not"),
    _case("zeros", (5, 33, 35), "zeros", "zeros of both signs: GELU of the bias"),
    _case("alternating", (4, 300, 20), "alternating", "large terms of alternating sign nearly cancel"),
    _case("nan in a", (9, 40, 36), "nan", "a NaN poisons its own row and no other"),
    _case("nan in b", (9, 40, 36), "b_nan", "a NaN poisons its own column and no other"),
    _case("float16", (20, 100, 30), "normal", "a half-precision accumulator is far outside", dtype="float16"),
    _case("float32", (17, 90, 34), "normal", "the tight bound of float32", dtype="float32"),
)

NUMERIC = ("incorrect_numeric",)
EITHER = ("incorrect_numeric", "incorrect_nan")
MUTATED = ("compile_error", "runtime_error", "policy_violation")

WRONG_KERNELS = (
    WrongKernel("tail_dropped", Backend.NUMBA, "tail dropped", NUMERIC),
    WrongKernel("bias_ignored", Backend.NUMBA, "bias ignored", NUMERIC),
    WrongKernel("gelu_of_sum_only", Backend.NUMBA, "bias after GELU", NUMERIC),
    WrongKernel("other_gelu", Backend.NUMBA, "another GELU", NUMERIC),
    WrongKernel("nan_swallowed", Backend.NUMBA, "NaN swallowed", ("incorrect_nan",)),
    WrongKernel("narrow_accumulate", Backend.NUMBA, "narrow accumulator", NUMERIC),
    WrongKernel("store_past_end", Backend.NUMBA, "out-of-bounds store", ("out_of_bounds",)),
    WrongKernel("input_mutated", Backend.NUMBA, "input mutated", MUTATED),
    WrongKernel("nondeterministic", Backend.NUMBA, "nondeterministic", ("incorrect_nondeterministic",)),
    WrongKernel("stale_answer", Backend.NUMBA, "answer replayed", EITHER),
    WrongKernel("tail_dropped", Backend.TRITON, "tail dropped", EITHER),
    WrongKernel("bias_ignored", Backend.TRITON, "bias ignored", NUMERIC),
    WrongKernel("gelu_of_sum_only", Backend.TRITON, "bias after GELU", NUMERIC),
    WrongKernel("other_gelu", Backend.TRITON, "another GELU", NUMERIC),
    WrongKernel("nan_swallowed", Backend.TRITON, "NaN swallowed", ("incorrect_nan",)),
    WrongKernel("half_accumulate", Backend.TRITON, "narrow accumulator", NUMERIC),
    WrongKernel("overflow_to_nan", Backend.TRITON, "overflow inside GELU", ("incorrect_nan",)),
    WrongKernel("store_past_end", Backend.TRITON, "out-of-bounds store", ("out_of_bounds", "runtime_error")),
)
