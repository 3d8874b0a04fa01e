"""Correctness cases of layer_norm, written by people, and the wrong kernels that must be refused."""

from __future__ import annotations

from harness.domain.vocabulary import Backend
from harness.operators.base import WrongKernel
from harness.operators.rows import row_case

CASES = (
    row_case("rows=3 cols=1021", 3, 1021, "normal", "prime length: the tail after the last full block", smoke=True),
    row_case("far offset", 5, 1500, "far_offset", "values around 1e4 that differ by 1: the mean square less the "
             "squared mean has no right digit left", dtype="float32"),
    row_case("far steps", 6, 1500, "far_steps", "one far value and a few that are a step of half precision larger, in "
             "every dtype: only deviations from the mean have a size"),
    row_case("offset", 4, 3000, "offset", "a common offset of 100"),
    row_case("negative offset", 4, 700, "negative_offset", "values around -1e4 that differ by 4", dtype="float32"),
    row_case("strided", 6, 256, "normal", "rows further apart than their length", layout="strided"),
    row_case("strided tail", 3, 77, "wide", "short rows far apart, an odd length", layout="strided"),
    row_case("misaligned", 4, 515, "normal", "every base address is shifted by one element", layout="offset"),
    row_case("one element", 1, 1, "normal", "the smallest problem: no variance, the answer is the bias"),
    row_case("rows=9 cols=1", 9, 1, "negative", "rows of one element: the bias in each"),
    row_case("rows=7 cols=2", 7, 2, "normal", "rows of two elements, one standard deviation to either side"),
    row_case("rows=1 cols=4099", 1, 4099, "normal", "one row, prime length above a power of two"),
    row_case("rows=5 cols=127", 5, 127, "negative", "one below a power of two, all negative"),
    row_case("rows=129 cols=33", 129, 33, "normal", "many short odd rows", attributes={"eps": 1e-6}),
    row_case("tiny beside eps", 4, 512, "tiny", "eps decides where x is tiny", attributes={"eps": 1e-2}),
    row_case("zeros", 3, 257, "zeros", "only eps stands between the result and 0/0"),
    row_case("equal", 4, 1000, "equal", "all values of a row alike: no variance but that of rounding"),
    row_case("huge", 4, 1024, "huge", "squares of huge deviations must not overflow float32 sums"),
    row_case("wide", 6, 2049, "wide", "magnitudes from 1e-4 to 1e4 in one row, weights from 1e-5 to 1e5"),
    # Short: squares of many equal deviations make a long serial sum drift.
    row_case("one_hot", 16, 23, "one_hot", "a single non-zero entry at a random place"),
    row_case("spike", 8, 1030, "spike", "one value a thousand times larger than the rest"),
    row_case("alternating", 4, 2048, "alternating", "large values of alternating sign: a mean near 0"),
    row_case("sorted", 4, 1025, "sorted", "values in rising order, one above a power of two"),
    row_case("long", 2, 65537, "normal", "a long reduction, one above 2^16"),
    row_case("nan", 5, 300, "nan", "a NaN poisons its own row and no other"),
    row_case("neg_inf", 5, 300, "neg_inf", "-inf has no distance from its mean: the whole row is NaN"),
    row_case("special weights", 4, 300, "special_weights", "NaN and infinity in weight and bias make their columns so"),
    row_case("largest squares", 4, 90, "largest_squares", "squares up to 1e34: a float32 holds their sum, and "
             "with two counts as factors what joins the means of parts"),
    row_case("denormal", 4, 600, "denormal", "two values in three are denormal"),
    row_case("small", 4, 777, "small", "values around 1e-3, beside an eps of 1e-5", attributes={"eps": 1e-5}),
    row_case("rows=65537 cols=3", 65537, 3, "normal", "more rows than a grid's second axis can count"),
)

INTERPRET_CASES = (
    row_case("rows=3 cols=1021", 3, 1021, "normal", "prime length: the tail after the last full block", smoke=True),
    row_case("far offset", 2, 1500, "far_offset", "values around 1e4 that differ by 1: two-pass accuracy in float32",
             dtype="float32"),
    row_case("far steps", 3, 1500, "far_steps", "one far value and a few that are a step of half precision larger"),
    row_case("far steps float16", 3, 1100, "far_steps", "the same in the other half precision", dtype="float16"),
    row_case("offset", 2, 1500, "offset", "a common offset of 100"),
    row_case("strided", 3, 256, "normal", "rows further apart than their length", layout="strided"),
    row_case("one element", 1, 1, "normal", "the smallest problem: no variance, the answer is the bias"),
    row_case("cols=4099", 2, 4099, "normal", "prime length above a power of two", attributes={"eps": 1e-6}),
    row_case("float16 overflow", 3, 2048, "huge", "squares overflow a float16 accumulator", dtype="float16"),
    row_case("float32", 3, 777, "normal", "the tight bound of float32", dtype="float32"),
    row_case("tiny beside eps", 2, 512, "tiny", "eps decides where x is tiny", attributes={"eps": 1e-2}),
    row_case("zeros", 2, 257, "zeros", "only eps stands between the result and 0/0"),
    row_case("equal", 2, 1000, "equal", "all values of a row alike: a bfloat16 accumulator stalls"),
    row_case("wide", 3, 1500, "wide", "magnitudes from 1e-4 to 1e4 in one row"),
    row_case("spike", 3, 1030, "spike", "one value a thousand times larger than the rest"),
    row_case("nan", 3, 300, "nan", "a NaN poisons its own row and no other"),
    row_case("neg_inf", 3, 300, "neg_inf", "-inf has no distance from its mean: the whole row is NaN"),
    row_case("special weights", 2, 300, "special_weights", "NaN and infinity in weight and bias make their columns so"),
)

NUMERIC = ("incorrect_numeric",)
EITHER = ("incorrect_numeric", "incorrect_nan")
MUTATED = ("compile_error", "runtime_error", "policy_violation")

WRONG_KERNELS = (
    WrongKernel("tail_dropped", Backend.NUMBA, "tail dropped", NUMERIC),
    WrongKernel("eps_ignored", Backend.NUMBA, "eps ignored", (*EITHER, "runtime_error")),
    WrongKernel("weight_ignored", Backend.NUMBA, "weight ignored", NUMERIC),
    WrongKernel("bias_ignored", Backend.NUMBA, "bias ignored", NUMERIC),
    WrongKernel("one_pass", Backend.NUMBA, "variance cancelled", EITHER),
    WrongKernel("unbiased_variance", Backend.NUMBA, "wrong scale", EITHER),
    WrongKernel("nan_swallowed", Backend.NUMBA, "NaN swallowed", ("incorrect_nan",)),
    WrongKernel("narrow_accumulate", Backend.NUMBA, "narrow accumulator", EITHER),
    WrongKernel("store_past_end", Backend.NUMBA, "out-of-bounds store", ("out_of_bounds",)),
    WrongKernel("input_mutated", Backend.NUMBA, "input mutated", MUTATED),
    WrongKernel("nondeterministic", Backend.NUMBA, "nondeterministic", ("incorrect_nondeterministic",)),
    WrongKernel("stale_answer", Backend.NUMBA, "answer replayed", NUMERIC),
    WrongKernel("tail_dropped", Backend.TRITON, "tail dropped", NUMERIC),
    WrongKernel("eps_ignored", Backend.TRITON, "eps ignored", EITHER),
    WrongKernel("weight_ignored", Backend.TRITON, "weight ignored", NUMERIC),
    WrongKernel("bias_ignored", Backend.TRITON, "bias ignored", NUMERIC),
    WrongKernel("one_pass", Backend.TRITON, "variance cancelled", EITHER),
    WrongKernel("unbiased_variance", Backend.TRITON, "wrong scale", EITHER),
    WrongKernel("padding_counted", Backend.TRITON, "padding counted", NUMERIC),
    WrongKernel("nan_swallowed", Backend.TRITON, "NaN swallowed", ("incorrect_nan",)),
    WrongKernel("half_accumulate", Backend.TRITON, "narrow accumulator", EITHER),
    WrongKernel("store_past_end", Backend.TRITON, "out-of-bounds store", ("out_of_bounds", "runtime_error")),
    WrongKernel("stride_ignored", Backend.TRITON, "row stride ignored", EITHER),
)
