"""Correctness cases of topk, written by people, and the wrong kernels that must be refused."""

from __future__ import annotations

from harness.domain.vocabulary import Backend
from harness.operators.base import Case, WrongKernel


def _case(name: str, shape: tuple[int, int, int], regime: str, reason: str, **more: object) -> Case:
    """``shape`` is rows, columns, k."""
    dims = dict(zip(("rows", "cols", "k"), shape, strict=True))
    return Case(name, dims, regime, reason, attributes={"k": dims["k"]}, **more)  # type: ignore[arg-type]


CASES = (
    _case("rows=3 cols=1021", (3, 1021, 64), "normal", "prime length: the tail after the last full block", smoke=True),
    _case("rows=5 cols=256 strided", (5, 256, 8), "normal", "rows further apart than their length", layout="strided"),
    _case("rows=1 cols=1", (1, 1, 1), "normal", "the smallest problem"),
    _case("k = cols", (4, 77, 77), "normal", "the whole row in order"),
    _case("k = cols - 1", (4, 64, 63), "normal", "all but the smallest"),
    _case("k = 1", (6, 500, 1), "normal", "the largest value alone"),
    _case("k = 256", (2, 1500, 256), "normal", "the largest k"),
    _case("k = 65", (3, 700, 65), "normal", "one above a power of two"),
    _case("rows=1 cols=4099", (1, 4099, 50), "normal", "one row, prime length above a power of two"),
    _case("rows=129 cols=33", (129, 33, 5), "normal", "many short odd rows"),
    _case("equal", (4, 1000, 64), "equal", "all values alike: the first columns in order"),
    _case("few values", (4, 900, 64), "few", "four different values, ties everywhere"),
    _case("tie at the end", (6, 700, 33), "last_tie", "half stand out, the rest must come from the first of many ties"),
    _case("both zeros", (4, 300, 20), "both_zeros", "zeros of either sign are equal and come by index"),
    _case("nans", (6, 400, 16), "nans", "NaN of either sign comes first, by index, in some rows more than are wanted"),
    _case("one nan", (5, 300, 8), "nan", "a NaN leads its row and no other"),
    _case("infinities", (4, 600, 40), "infinities", "infinities are values like others"),
    _case("hardly any", (4, 500, 64), "hardly_any", "fewer numbers than are wanted: -inf fills up by index"),
    _case("all -inf", (5, 300, 7), "all_neg_inf", "rows that are all -inf"),
    _case("sorted", (4, 1500, 64), "sorted", "rising: the largest are the last, every value beats all before it"),
    _case("falling", (4, 1500, 64), "falling", "falling: the first ones are the answer"),
    _case("cluster", (6, 3000, 32), "cluster", "all of the largest side by side"),
    _case("spike", (8, 1030, 4), "spike", "one value a thousand times larger than the rest"),
    _case("negative", (4, 260, 10), "negative", "all values below 0"),
    _case("masked", (6, 800, 64), "masked", "a third of the values hidden by -inf"),
    _case("denormal", (4, 600, 30), "all_denormal", "nothing but denormal values, which must not be flushed"),
    _case("largest", (4, 333, 12), "largest", "values near the end of the range"),
    _case("wide", (4, 513, 40), "wide", "magnitudes from 1e-4 to 1e4"),
    _case("long", (2, 65537, 64), "normal", "a long row, one above 2^16"),
    _case("misaligned", (4, 515, 9), "normal", "base addresses are shifted by one element", layout="offset"),
    _case("strided tail", (3, 77, 3), "few", "short rows far apart, an odd length", layout="strided"),
    _case("rows=65537 cols=3", (65537, 3, 2), "normal", "more rows than a grid's second axis can count"),
)

INTERPRET_CASES = (
    _case("rows=3 cols=1021", (3, 1021, 64), "normal", "prime length: the tail after the last full block", smoke=True),
    _case("rows=1 cols=1", (1, 1, 1), "normal", "the smallest problem"),
    _case("rows=3 cols=256 strided", (3, 256, 8), "normal", "rows further apart than their length", layout="strided"),
    _case("k = cols", (2, 77, 77), "normal", "the whole row in order"),
    _case("k = 256", (1, 600, 256), "normal", "the largest k"),
    _case("cols=4099", (1, 4099, 50), "normal", "prime length above a power of two"),
    _case("float32", (2, 777, 33), "normal", "keys of 32 bits", dtype="float32"),
    _case("float16", (2, 1300, 20), "normal", "another 16-bit format", dtype="float16"),
    _case("equal", (2, 1000, 64), "equal", "all values alike: the first columns in order"),
    _case("few values", (2, 900, 64), "few", "four different values, ties everywhere"),
    _case("tie at the end", (2, 700, 33), "last_tie", "half stand out, the rest are the first of many ties"),
    _case("both zeros", (2, 300, 20), "both_zeros", "zeros of either sign are equal and come by index"),
    _case("nans", (3, 400, 16), "nans", "NaN of either sign comes first, by index"),
    _case("float32 nans", (3, 300, 16), "nans", "NaN in keys of 32 bits", dtype="float32"),
    _case("float16 nans", (3, 300, 16), "nans", "NaN in the other 16-bit format", dtype="float16"),
    _case("infinities", (2, 600, 40), "infinities", "infinities are values like others"),
    _case("hardly any", (2, 500, 64), "hardly_any", "fewer numbers than are wanted: -inf fills up by index"),
    _case("sorted", (2, 1500, 64), "sorted", "rising: the largest are the last"),
    _case("cluster", (2, 2500, 32), "cluster", "all of the largest side by side"),
    _case("masked", (2, 800, 64), "masked", "a third of the values hidden by -inf"),
    _case("denormal", (2, 300, 30), "all_denormal", "nothing but denormal values, which must not be flushed"),
)

NUMERIC = ("incorrect_numeric",)
MUTATED = ("compile_error", "runtime_error", "policy_violation")
EITHER = ("incorrect_numeric", "incorrect_nan")
PAST = ("out_of_bounds", "runtime_error")

WRONG_KERNELS = (
    WrongKernel("tail_dropped", Backend.NUMBA, "tail dropped", NUMERIC),
    WrongKernel("ties_by_higher_index", Backend.NUMBA, "ties in the wrong order", NUMERIC),
    WrongKernel("nan_ignored", Backend.NUMBA, "NaN not first", EITHER),
    WrongKernel("ascending", Backend.NUMBA, "wrong order", EITHER),
    WrongKernel("by_size", Backend.NUMBA, "sign ignored", EITHER),
    WrongKernel("index_from_one", Backend.NUMBA, "wrong index", NUMERIC),
    WrongKernel("last_one_missing", Backend.NUMBA, "one rank short", EITHER),
    WrongKernel("store_past_end", Backend.NUMBA, "out-of-bounds store", ("out_of_bounds",)),
    WrongKernel("input_mutated", Backend.NUMBA, "input mutated", MUTATED),
    WrongKernel("nondeterministic", Backend.NUMBA, "nondeterministic", (*NUMERIC, "incorrect_nondeterministic")),
    WrongKernel("stale_answer", Backend.NUMBA, "answer replayed", EITHER),
    WrongKernel("tail_dropped", Backend.TRITON, "tail dropped", NUMERIC),
    WrongKernel("ties_by_higher_index", Backend.TRITON, "ties in the wrong order", NUMERIC),
    WrongKernel("nan_ignored", Backend.TRITON, "NaN not first", EITHER),
    WrongKernel("by_size", Backend.TRITON, "sign ignored", EITHER),
    WrongKernel("zeros_apart", Backend.TRITON, "zeros told apart", NUMERIC),
    WrongKernel("unsorted", Backend.TRITON, "wrong order", EITHER),
    WrongKernel("padding_counted", Backend.TRITON, "padding counted", (*EITHER, *PAST)),
    WrongKernel("stride_ignored", Backend.TRITON, "stride ignored", EITHER),
    WrongKernel("store_past_end", Backend.TRITON, "out-of-bounds store", PAST),
)
