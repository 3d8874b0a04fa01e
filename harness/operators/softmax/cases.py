"""Correctness cases of softmax, written by people, and the wrong kernels that must be refused."""

from __future__ import annotations

from harness.domain.vocabulary import Backend
from harness.operators.base import Case, WrongKernel


def _case(name: str, rows: int, cols: int, regime: str, reason: str, **more: object) -> Case:
    return Case(name, {"rows": rows, "cols": cols}, regime, reason, **more)  # type: ignore[arg-type]


CASES = (
    _case("rows=3 cols=1021", 3, 1021, "normal", "prime length: the tail after the last full block", smoke=True),
    _case("rows=5 cols=256 strided", 5, 256, "normal", "rows further apart than their length", layout="strided"),
    _case("rows=1 cols=1", 1, 1, "normal", "the smallest problem: the answer is 1"),
    _case("rows=7 cols=1", 7, 1, "negative", "rows of one element"),
    _case("rows=1 cols=4099", 1, 4099, "normal", "one row, prime length above a power of two"),
    _case("rows=4 cols=127", 4, 127, "negative", "one below a power of two, all negative"),
    _case("rows=129 cols=33", 129, 33, "normal", "many short odd rows"),
    _case("offset", 4, 3000, "offset", "exponentials overflow unless the maximum is subtracted"),
    _case("negative offset", 4, 700, "negative_offset", "exponentials vanish unless the maximum is subtracted"),
    _case("huge", 4, 1024, "huge", "differences far beyond the range of exp"),
    _case("tiny", 4, 515, "tiny", "almost uniform: every probability near 1/cols"),
    _case("wide", 6, 2049, "wide", "magnitudes from 1e-4 to 1e4 in one row"),
    _case("equal", 4, 1000, "equal", "all values of a row alike"),
    _case("one_hot", 8, 509, "one_hot", "one entry dominates at a random place"),
    _case("spike", 8, 1030, "spike", "one value a thousand times larger than the rest"),
    _case("sorted", 4, 2048, "sorted", "the running maximum changes at every element"),
    _case("long", 2, 65537, "normal", "a long reduction, one above 2^16"),
    _case("masked run", 6, 2500, "masked_run",
          "a run of -inf longer than a block: what was gathered so far is nothing, not NaN"),
    _case("masked", 6, 800, "masked", "single -inf entries give exactly 0"),
    _case("all -inf", 5, 300, "all_neg_inf", "rows that are all -inf give NaN, their neighbours do not"),
    _case("nan", 5, 300, "nan", "a NaN poisons its own row and no other"),
    _case("misaligned", 4, 515, "normal", "the base address is shifted by one element", layout="offset"),
    _case("zeros", 3, 257, "zeros", "zeros of both signs are equal"),
    _case("alternating", 4, 1025, "alternating", "large values of alternating sign, one above a power of two"),
    _case("denormal", 4, 600, "all_denormal", "nothing but denormal values: all probabilities alike"),
    _case("largest", 4, 333, "largest", "values near the end of the range, their differences beyond it"),
    _case("small", 4, 4096, "small", "values around 1e-3, a power of two of them"),
    _case("strided tail", 3, 77, "masked", "short rows far apart, an odd length", layout="strided"),
    _case("rows=65537 cols=3", 65537, 3, "normal", "more rows than a grid's second axis can count"),
)

INTERPRET_CASES = (
    _case("rows=3 cols=1021", 3, 1021, "normal", "prime length: the tail after the last full block", smoke=True),
    _case("rows=1 cols=1", 1, 1, "normal", "the smallest problem: the answer is 1"),
    _case("rows=3 cols=256 strided", 3, 256, "normal", "rows further apart than their length", layout="strided"),
    _case("cols=4099", 2, 4099, "normal", "prime length above a power of two"),
    _case("float32", 3, 777, "normal", "the tight bound of float32", dtype="float32"),
    _case("float16", 3, 1300, "normal", "subnormal results of float16", dtype="float16"),
    _case("offset", 2, 1500, "offset", "exponentials overflow unless the maximum is subtracted"),
    _case("huge", 2, 1024, "huge", "differences far beyond the range of exp"),
    _case("equal", 2, 1000, "equal", "all values of a row alike: a bfloat16 sum stalls at 256"),
    _case("one_hot", 3, 509, "one_hot", "one entry dominates at a random place"),
    _case("spike", 3, 1030, "spike", "one value a thousand times larger than the rest"),
    _case("masked run", 3, 2500, "masked_run",
          "a run of -inf longer than a block: what was gathered so far is nothing, not NaN"),
    _case("masked", 3, 800, "masked", "single -inf entries give exactly 0"),
    _case("all -inf", 3, 300, "all_neg_inf", "rows that are all -inf give NaN, their neighbours do not"),
    _case("nan", 3, 300, "nan", "a NaN poisons its own row and no other"),
)

NUMERIC = ("incorrect_numeric",)
MUTATED = ("compile_error", "runtime_error", "policy_violation")
EITHER = ("incorrect_numeric", "incorrect_nan")

WRONG_KERNELS = (
    WrongKernel("tail_dropped", Backend.NUMBA, "tail dropped", NUMERIC),
    WrongKernel("max_ignored", Backend.NUMBA, "maximum not subtracted", EITHER),
    WrongKernel("wrong_scale", Backend.NUMBA, "wrong scale", EITHER),
    WrongKernel("nan_swallowed", Backend.NUMBA, "NaN swallowed", ("incorrect_nan",)),
    WrongKernel("narrow_accumulate", Backend.NUMBA, "narrow accumulator", NUMERIC),
    WrongKernel("coarse_exp", Backend.NUMBA, "crude exponential", NUMERIC),
    WrongKernel("store_past_end", Backend.NUMBA, "out-of-bounds store", ("out_of_bounds",)),
    WrongKernel("input_mutated", Backend.NUMBA, "input mutated", MUTATED),
    WrongKernel("nondeterministic", Backend.NUMBA, "nondeterministic", ("incorrect_nondeterministic",)),
    WrongKernel("stale_answer", Backend.NUMBA, "answer replayed", EITHER),
    WrongKernel("tail_dropped", Backend.TRITON, "tail dropped", NUMERIC),
    WrongKernel("max_ignored", Backend.TRITON, "maximum not subtracted", EITHER),
    WrongKernel("wrong_scale", Backend.TRITON, "wrong scale", EITHER),
    WrongKernel("nan_swallowed", Backend.TRITON, "NaN swallowed", ("incorrect_nan",)),
    WrongKernel("half_accumulate", Backend.TRITON, "narrow accumulator", NUMERIC),
    WrongKernel("mask_as_zero", Backend.TRITON, "padding counted", NUMERIC),
    WrongKernel("store_past_end", Backend.TRITON, "out-of-bounds store", ("out_of_bounds", "runtime_error")),
)
