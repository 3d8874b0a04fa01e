"""Correctness cases of cross_entropy, written by people, and the wrong kernels that must be refused."""

from __future__ import annotations

from harness.domain.vocabulary import Backend
from harness.operators.base import Case, WrongKernel


def _case(name: str, rows: int, vocab: int, regime: str, reason: str, *, ignore: int = -100, **more: object) -> Case:
    return Case(name, {"rows": rows, "vocab": vocab}, regime, reason,
                attributes={"ignore_index": ignore}, **more)  # type: ignore[arg-type]


CASES = (
    _case("rows=9 vocab=1021", 9, 1021, "normal", "prime length: the tail after the last full block", smoke=True),
    _case("rows=5 vocab=256 strided", 5, 256, "normal", "rows further apart than their length", layout="strided"),
    _case("rows=1 vocab=1", 1, 1, "sure", "the smallest problem: the loss is 0"),
    _case("rows=7 vocab=1", 7, 1, "normal", "one class: every loss is 0"),
    _case("rows=1 vocab=4099", 1, 4099, "edge_targets", "one row, prime length above a power of two"),
    _case("rows=6 vocab=127", 6, 127, "edge_targets", "one below a power of two; targets are its first and last class"),
    _case("rows=129 vocab=33", 129, 33, "normal", "many short odd rows, some of them ignored"),
    _case("all ignored", 6, 300, "all_ignored", "every loss is 0 although a row has a NaN"),
    _case("class 0 ignored", 64, 11, "normal", "a valid class is ignored: its rows give 0", ignore=0),
    _case("class 7 ignored", 64, 11, "edge_targets", "a valid class that no row has is ignored", ignore=7),
    _case("ignored -1", 24, 120, "normal", "another number for what is ignored", ignore=-1),
    _case("ignored far outside", 24, 120, "normal", "an ignored target far beyond the classes must not be read",
          ignore=2**40),
    _case("offset", 4, 3000, "offset", "exponentials overflow unless the maximum is subtracted"),
    _case("negative offset", 4, 700, "negative_offset", "exponentials vanish unless the maximum is subtracted"),
    _case("huge", 4, 1024, "huge", "differences far beyond the range of exp"),
    _case("tiny", 4, 515, "tiny", "almost uniform: every loss near the logarithm of the number of classes"),
    _case("wide", 6, 2049, "wide", "magnitudes from 1e-4 to 1e4 in one row"),
    _case("equal", 4, 1000, "equal", "all logits of a row alike"),
    _case("spike", 8, 1030, "spike", "one logit a thousand times larger than the rest"),
    _case("sure", 8, 777, "sure", "the target has nearly all of the probability: losses near 0"),
    _case("sorted", 4, 2048, "sorted", "the running maximum changes at every element"),
    _case("long", 2, 65537, "normal", "a long reduction, one above 2^16"),
    _case("masked run", 6, 2500, "masked_run",
          "a run of -inf longer than a block: what was gathered so far is nothing, not NaN"),
    _case("masked", 6, 800, "masked", "single -inf logits count nothing"),
    _case("hidden target", 6, 800, "hidden_target", "a target of -inf makes the loss infinite"),
    _case("all -inf", 5, 300, "all_neg_inf", "rows that are all -inf give NaN, their neighbours do not"),
    _case("nan", 5, 300, "nan", "a NaN poisons its own row and no other"),
    _case("misaligned", 4, 515, "normal", "base addresses are shifted by one element", layout="offset"),
    _case("denormal", 4, 600, "all_denormal", "nothing but denormal logits"),
    _case("largest", 4, 333, "largest", "logits near the end of the range, their differences beyond it"),
    _case("strided tail", 3, 77, "masked", "short rows far apart, an odd length", layout="strided"),
    _case("rows=65537 vocab=3", 65537, 3, "normal", "more rows than a grid's second axis can count"),
)

INTERPRET_CASES = (
    _case("rows=6 vocab=1021", 6, 1021, "normal", "prime length: the tail after the last full block", smoke=True),
    _case("rows=1 vocab=1", 1, 1, "sure", "the smallest problem: the loss is 0"),
    _case("rows=3 vocab=256 strided", 3, 256, "normal", "rows further apart than their length", layout="strided"),
    _case("vocab=4099", 2, 4099, "edge_targets", "prime length above a power of two; first and last class"),
    _case("float32", 3, 777, "normal", "float32 logits", dtype="float32"),
    _case("float16", 3, 1300, "normal", "float16 logits", dtype="float16"),
    _case("all ignored", 3, 300, "all_ignored", "every loss is 0 although a row has a NaN"),
    _case("class 0 ignored", 12, 3, "normal", "a valid class is ignored: its rows give 0", ignore=0),
    _case("ignored far outside", 8, 40, "normal", "an ignored target far beyond the classes must not be read",
          ignore=2**40),
    _case("offset", 2, 1500, "offset", "exponentials overflow unless the maximum is subtracted"),
    _case("huge", 2, 1024, "huge", "differences far beyond the range of exp"),
    _case("equal", 2, 1000, "equal", "all logits of a row alike: a bfloat16 sum stalls at 256"),
    _case("spike", 3, 1030, "spike", "one logit a thousand times larger than the rest"),
    _case("sure", 3, 700, "sure", "the target has nearly all of the probability"),
    _case("masked run", 3, 2500, "masked_run",
          "a run of -inf longer than a block: what was gathered so far is nothing, not NaN"),
    _case("masked", 3, 800, "masked", "single -inf logits count nothing"),
    _case("hidden target", 3, 300, "hidden_target", "a target of -inf makes the loss infinite"),
    _case("all -inf", 3, 300, "all_neg_inf", "rows that are all -inf give NaN, their neighbours do not"),
    _case("nan", 3, 300, "nan", "a NaN poisons its own row and no other"),
)

NUMERIC = ("incorrect_numeric",)
MUTATED = ("compile_error", "runtime_error", "policy_violation")
EITHER = ("incorrect_numeric", "incorrect_nan")

WRONG_KERNELS = (
    WrongKernel("tail_dropped", Backend.NUMBA, "tail dropped", NUMERIC),
    WrongKernel("max_ignored", Backend.NUMBA, "maximum not subtracted", EITHER),
    WrongKernel("ignore_index_ignored", Backend.NUMBA, "ignored rows counted", (*EITHER, "out_of_bounds")),
    WrongKernel("neighbour_class", Backend.NUMBA, "wrong target", (*EITHER, "out_of_bounds")),
    WrongKernel("wrong_base", Backend.NUMBA, "wrong scale", NUMERIC),
    WrongKernel("nan_swallowed", Backend.NUMBA, "NaN swallowed", ("incorrect_nan",)),
    WrongKernel("narrow_accumulate", Backend.NUMBA, "narrow accumulator", NUMERIC),
    WrongKernel("coarse_exp", Backend.NUMBA, "crude exponential", NUMERIC),
    WrongKernel("store_past_end", Backend.NUMBA, "out-of-bounds store", ("out_of_bounds",)),
    WrongKernel("input_mutated", Backend.NUMBA, "input mutated", MUTATED),
    WrongKernel("nondeterministic", Backend.NUMBA, "nondeterministic", ("incorrect_nondeterministic",)),
    WrongKernel("stale_answer", Backend.NUMBA, "answer replayed", EITHER),
    WrongKernel("tail_dropped", Backend.TRITON, "tail dropped", NUMERIC),
    WrongKernel("max_ignored", Backend.TRITON, "maximum not subtracted", EITHER),
    WrongKernel("ignore_index_ignored", Backend.TRITON, "ignored rows counted", (*EITHER, "runtime_error")),
    WrongKernel("neighbour_class", Backend.TRITON, "wrong target", EITHER),
    WrongKernel("wrong_base", Backend.TRITON, "wrong scale", NUMERIC),
    WrongKernel("nan_swallowed", Backend.TRITON, "NaN swallowed", ("incorrect_nan",)),
    WrongKernel("half_accumulate", Backend.TRITON, "narrow accumulator", EITHER),
    WrongKernel("mask_as_zero", Backend.TRITON, "padding counted", NUMERIC),
    WrongKernel("stride_ignored", Backend.TRITON, "stride ignored", EITHER),
    WrongKernel("store_past_end", Backend.TRITON, "out-of-bounds store", ("out_of_bounds", "runtime_error")),
)
