"""Correctness cases of rms_norm, written by people, and the wrong kernels that must be refused."""

from __future__ import annotations

from harness.domain.vocabulary import Backend
from harness.operators.base import WrongKernel
from harness.operators.rows import row_case

CASES = (
    row_case("rows=3 cols=1021", 3, 1021, "normal", "prime length: the tail after the last full block", smoke=True),
    row_case("rows=5 cols=256 strided", 5, 256, "normal", "rows further apart than their length", layout="strided"),
    row_case("rows=1 cols=1", 1, 1, "normal", "the smallest problem"),
    row_case("rows=7 cols=1", 7, 1, "normal", "rows of one element"),
    row_case("rows=1 cols=4099", 1, 4099, "normal", "one row, prime length above a power of two"),
    row_case("rows=4 cols=127", 4, 127, "negative", "one below a power of two, all negative"),
    row_case("rows=129 cols=33", 129, 33, "normal", "many short odd rows", attributes={"eps": 1e-5}),
    row_case("eps=1e-2 tiny", 4, 512, "tiny", "eps decides where x is tiny", attributes={"eps": 1e-2}),
    row_case("zeros", 3, 257, "zeros", "only eps stands between the result and 0/0"),
    row_case("huge", 4, 1024, "huge", "squares of huge values must not overflow float32 sums"),
    row_case("wide", 6, 2049, "wide", "magnitudes from 1e-4 to 1e4 in one row"),
    row_case("equal", 4, 1000, "equal", "all values of a row alike"),
    row_case("one_hot", 8, 509, "one_hot", "a single non-zero entry at a random place"),
    row_case("spike", 8, 1030, "spike", "one value a thousand times larger than the rest"),
    row_case("alternating", 4, 2048, "alternating", "large values of alternating sign"),
    row_case("offset", 4, 3000, "offset", "a common offset of 100"),
    row_case("long", 2, 65537, "normal", "a long reduction, one above 2^16"),
    row_case("nan", 5, 300, "nan", "a NaN poisons its own row and no other"),
    row_case("neg_inf", 5, 300, "neg_inf", "-inf makes its entry NaN and the rest of its row 0"),
    row_case("misaligned", 4, 515, "normal", "the base address is shifted by one element", layout="offset"),
    row_case("sorted", 4, 1025, "sorted", "values in rising order, one above a power of two"),
    row_case("denormal", 4, 600, "denormal", "two values in three are denormal"),
    row_case("small", 4, 777, "small", "values around 1e-3, beside an eps of 1e-5", attributes={"eps": 1e-5}),
    row_case("large", 4, 4096, "large", "values around 1e3, a power of two of them"),
    row_case("strided tail", 3, 77, "wide", "short rows far apart, an odd length", layout="strided"),
    row_case("special weights", 4, 300, "special_weights", "NaN and infinity in weight make their own columns so"),
    row_case("largest squares", 4, 90, "largest_squares", "squares up to 1e36, whose sum a float32 just holds"),
    row_case("rows=65537 cols=3", 65537, 3, "normal", "more rows than a grid's second axis can count"),
)

INTERPRET_CASES = (
    row_case("rows=3 cols=1021", 3, 1021, "normal", "prime length: the tail after the last full block", smoke=True),
    row_case("rows=1 cols=1", 1, 1, "normal", "the smallest problem"),
    row_case("rows=3 cols=256 strided", 3, 256, "normal", "rows further apart than their length", layout="strided"),
    row_case("cols=4099", 2, 4099, "normal", "prime length above a power of two", attributes={"eps": 1e-5}),
    row_case("float16 overflow", 3, 2048, "huge", "squares overflow a float16 accumulator", dtype="float16"),
    row_case("float32", 3, 777, "normal", "the tight bound of float32", dtype="float32"),
    row_case("eps=1e-2 tiny", 2, 512, "tiny", "eps decides where x is tiny", attributes={"eps": 1e-2}),
    row_case("zeros", 2, 257, "zeros", "only eps stands between the result and 0/0"),
    row_case("wide", 3, 1500, "wide", "magnitudes from 1e-4 to 1e4 in one row"),
    row_case("equal", 2, 1000, "equal", "all values of a row alike: a bfloat16 accumulator stalls"),
    row_case("one_hot", 3, 509, "one_hot", "a single non-zero entry at a random place"),
    row_case("spike", 3, 1030, "spike", "one value a thousand times larger than the rest"),
    row_case("nan", 3, 300, "nan", "a NaN poisons its own row and no other"),
    row_case("neg_inf", 3, 300, "neg_inf", "-inf makes its entry NaN and the rest of its row 0"),
    row_case("special weights", 2, 300, "special_weights", "NaN and infinity in weight make their own columns so"),
    row_case("largest squares", 2, 90, "largest_squares", "squares up to 1e36, whose sum a float32 just holds"),
)

NUMERIC = ("incorrect_numeric",)
MUTATED = ("compile_error", "runtime_error", "policy_violation")

WRONG_KERNELS = (
    WrongKernel("tail_dropped", Backend.NUMBA, "tail dropped", NUMERIC),
    WrongKernel("eps_ignored", Backend.NUMBA, "eps ignored", ("incorrect_numeric", "incorrect_nan")),
    WrongKernel("weight_ignored", Backend.NUMBA, "weight ignored", NUMERIC),
    WrongKernel("wrong_scale", Backend.NUMBA, "wrong scale", NUMERIC),
    WrongKernel("nan_swallowed", Backend.NUMBA, "NaN swallowed", ("incorrect_nan",)),
    WrongKernel("narrow_accumulate", Backend.NUMBA, "narrow accumulator", ("incorrect_numeric", "incorrect_nan")),
    WrongKernel("store_past_end", Backend.NUMBA, "out-of-bounds store", ("out_of_bounds",)),
    WrongKernel("input_mutated", Backend.NUMBA, "input mutated", MUTATED),
    WrongKernel("nondeterministic", Backend.NUMBA, "nondeterministic", ("incorrect_nondeterministic",)),
    WrongKernel("stale_answer", Backend.NUMBA, "answer replayed", NUMERIC),
    WrongKernel("tail_dropped", Backend.TRITON, "tail dropped", NUMERIC),
    WrongKernel("eps_ignored", Backend.TRITON, "eps ignored", ("incorrect_numeric", "incorrect_nan")),
    WrongKernel("weight_ignored", Backend.TRITON, "weight ignored", NUMERIC),
    WrongKernel("wrong_scale", Backend.TRITON, "wrong scale", NUMERIC),
    WrongKernel("nan_swallowed", Backend.TRITON, "NaN swallowed", ("incorrect_nan",)),
    WrongKernel("half_accumulate", Backend.TRITON, "narrow accumulator", ("incorrect_numeric", "incorrect_nan")),
    WrongKernel("store_past_end", Backend.TRITON, "out-of-bounds store", ("out_of_bounds", "runtime_error")),
    WrongKernel("stride_ignored", Backend.TRITON, "row stride ignored", ("incorrect_numeric", "incorrect_nan")),
)
