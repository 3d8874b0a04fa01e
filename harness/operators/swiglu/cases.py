"""Correctness cases of swiglu, written by people, and the wrong kernels that must be refused."""

from __future__ import annotations

from harness.domain.vocabulary import Backend
from harness.operators.base import WrongKernel
from harness.operators.rows import row_case

CASES = (
    row_case("rows=3 cols=1021", 3, 1021, "normal", "prime length: the tail after the last full block", smoke=True),
    row_case("rows=1 cols=1", 1, 1, "normal", "the smallest problem"),
    row_case("rows=7 cols=1", 7, 1, "normal", "rows of one element"),
    row_case("rows=1 cols=4099", 1, 4099, "normal", "one row, prime length above a power of two"),
    row_case("rows=4 cols=127", 4, 127, "negative", "one below a power of two, all negative"),
    row_case("rows=129 cols=33", 129, 33, "normal", "many short odd rows"),
    row_case("negative offset", 4, 700, "negative_offset", "gates near -1e4: a sigmoid of 0, an infinite exponential"),
    row_case("offset", 4, 3000, "offset", "gates near 100: the sigmoid is 1, its exponential huge or 0"),
    row_case("tails", 6, 2049, "tails", "gates from -120 to 120: everything a float32 exponential can do"),
    row_case("huge gates", 4, 1024, "huge", "gates far beyond the range of any exponential, tiny ups"),
    row_case("largest", 4, 333, "largest", "gates near the end of the range"),
    row_case("large ups", 4, 517, "large_ups", "gate * up overflows where the result does not"),
    row_case("wide", 6, 2050, "wide", "magnitudes from 1e-4 to 1e4 in one row"),
    row_case("tiny", 4, 515, "tiny", "both factors tiny: half their product"),
    row_case("small", 4, 777, "small", "gates around 1e-3, where the sigmoid is nearly 1/2"),
    row_case("large", 4, 4096, "large", "values around 1e3, a power of two of them"),
    row_case("zeros", 3, 257, "zeros", "zeros of both signs"),
    row_case("equal", 4, 1000, "equal", "all values of a row alike"),
    row_case("one_hot", 8, 509, "one_hot", "a single non-zero entry at a random place"),
    row_case("spike", 8, 1030, "spike", "one value a thousand times larger than the rest"),
    row_case("alternating", 4, 1025, "alternating", "large gates of alternating sign, one above a power of two"),
    row_case("sorted", 4, 2048, "sorted", "values in rising order"),
    row_case("nan", 5, 300, "nan", "a NaN in gate or up poisons its own element and no other"),
    row_case("neg_inf", 5, 300, "neg_inf", "-inf in gate gives NaN, in up infinity, and nothing elsewhere"),
    row_case("denormal", 4, 600, "denormal", "two values in three are denormal"),
    row_case("misaligned", 4, 515, "normal", "the base addresses are shifted by one element", layout="offset"),
    row_case("long", 2, 65537, "normal", "long rows, one above 2^16"),
    row_case("rows=65537 cols=3", 65537, 3, "normal", "more rows than a grid's second axis can count"),
)

INTERPRET_CASES = (
    row_case("rows=3 cols=1021", 3, 1021, "normal", "prime length: the tail after the last full block", smoke=True),
    row_case("rows=1 cols=1", 1, 1, "normal", "the smallest problem"),
    row_case("rows=17 cols=33", 17, 33, "normal", "short odd rows"),
    row_case("cols=4099", 2, 4099, "normal", "prime length above a power of two"),
    row_case("float32", 3, 777, "tails", "the tight bound of float32, from one end of the exponential to the other",
          dtype="float32"),
    row_case("float16", 3, 1300, "tails", "subnormal results of float16", dtype="float16"),
    row_case("negative offset", 2, 700, "negative_offset", "gates near -1e4: a sigmoid of 0, an infinite exponential"),
    row_case("offset", 2, 1500, "offset", "gates near 100: the sigmoid is 1, its exponential huge or 0"),
    row_case("huge gates", 2, 1024, "huge", "gates far beyond the range of any exponential, tiny ups"),
    row_case("large ups", 2, 517, "large_ups", "gate * up overflows where the result does not"),
    row_case("wide", 3, 1500, "wide", "magnitudes from 1e-4 to 1e4 in one row"),
    row_case("one_hot", 3, 509, "one_hot", "a single non-zero entry at a random place"),
    row_case("spike", 3, 1030, "spike", "one value a thousand times larger than the rest"),
    row_case("nan", 3, 300, "nan", "a NaN in gate or up poisons its own element and no other"),
    row_case("neg_inf", 3, 300, "neg_inf", "-inf in gate gives NaN, in up infinity, and nothing elsewhere"),
)

NUMERIC = ("incorrect_numeric",)
EITHER = ("incorrect_numeric", "incorrect_nan")
MUTATED = ("compile_error", "runtime_error", "policy_violation")

WRONG_KERNELS = (
    WrongKernel("tail_dropped", Backend.NUMBA, "tail dropped", NUMERIC),
    WrongKernel("up_ignored", Backend.NUMBA, "argument ignored", NUMERIC),
    WrongKernel("roles_swapped", Backend.NUMBA, "arguments swapped", NUMERIC),
    WrongKernel("sigmoid_overflows", Backend.NUMBA, "sigmoid overflows", EITHER),
    WrongKernel("product_first", Backend.NUMBA, "product overflows", EITHER),
    WrongKernel("coarse_exp", Backend.NUMBA, "crude exponential", NUMERIC),
    WrongKernel("nan_swallowed", Backend.NUMBA, "NaN swallowed", ("incorrect_nan",)),
    WrongKernel("store_past_end", Backend.NUMBA, "out-of-bounds store", ("out_of_bounds",)),
    WrongKernel("input_mutated", Backend.NUMBA, "input mutated", MUTATED),
    WrongKernel("nondeterministic", Backend.NUMBA, "nondeterministic", ("incorrect_nondeterministic",)),
    WrongKernel("stale_answer", Backend.NUMBA, "answer replayed", EITHER),
    WrongKernel("tail_dropped", Backend.TRITON, "tail dropped", NUMERIC),
    WrongKernel("up_ignored", Backend.TRITON, "argument ignored", NUMERIC),
    WrongKernel("roles_swapped", Backend.TRITON, "arguments swapped", NUMERIC),
    WrongKernel("sigmoid_overflows", Backend.TRITON, "sigmoid overflows", EITHER),
    WrongKernel("product_first", Backend.TRITON, "product overflows", EITHER),
    WrongKernel("half_exponential", Backend.TRITON, "narrow intermediate", NUMERIC),
    WrongKernel("wrong_scale", Backend.TRITON, "wrong scale", NUMERIC),
    WrongKernel("nan_swallowed", Backend.TRITON, "NaN swallowed", ("incorrect_nan",)),
    WrongKernel("store_past_end", Backend.TRITON, "out-of-bounds store", ("out_of_bounds", "runtime_error")),
)
