"""Correctness cases of decode_attention, written by people, and the wrong kernels that must be refused."""

from __future__ import annotations

from harness.domain.vocabulary import Backend
from harness.operators.base import Case, WrongKernel


def _case(name: str, shape: tuple[int, int, int, int, int], regime: str, reason: str, **more: object) -> Case:
    """``shape`` is batch, query heads, kv heads, dim, max_seq."""
    dims = dict(zip(("batch", "q_heads", "kv_heads", "dim", "max_seq"), shape, strict=True))
    more.setdefault("attributes", {"scale": dims["dim"] ** -0.5})
    return Case(name, dims, regime, reason, **more)  # type: ignore[arg-type]


CASES = (
    _case("ragged", (5, 4, 2, 64, 61), "ragged", "lengths 0, 1, full and in between; NaN past each", smoke=True),
    _case("smallest", (1, 1, 1, 1, 1), "normal", "one head, one position, one column"),
    _case("one position", (3, 4, 4, 16, 1), "normal", "the answer is the only value"),
    _case("prime length", (2, 4, 1, 32, 257), "normal", "one above a power of two, all heads share one cache head"),
    _case("odd dim", (2, 6, 2, 33, 100), "ragged", "columns beyond the last full vector"),
    _case("group of 3", (2, 6, 2, 64, 90), "ragged", "three query heads per cache head, not a power of two"),
    _case("no grouping", (2, 5, 5, 16, 70), "ragged", "as many cache heads as query heads"),
    _case("all empty", (3, 4, 2, 32, 40), "empty", "length 0 everywhere: zeros, never NaN"),
    _case("all length 1", (4, 4, 2, 32, 40), "single", "the answer is the first value"),
    _case("scale 1", (2, 4, 2, 16, 120), "normal", "another scale than 1/sqrt(dim)", attributes={"scale": 1.0}),
    _case("peaked", (2, 4, 2, 64, 300), "peaked", "one key dominates at a random place"),
    _case("large scores", (2, 4, 2, 64, 200), "large_scores", "exponentials overflow unless the maximum is subtracted"),
    _case("equal keys", (2, 4, 2, 32, 129), "equal", "all keys alike: the answer is the mean of the values"),
    _case("spike in values", (2, 4, 2, 32, 150), "spike", "one value a thousand times larger than the rest"),
    _case("tiny", (2, 4, 2, 32, 77), "tiny", "tiny queries and keys, tiny values"),
    _case("huge values", (2, 4, 2, 32, 77), "huge", "values near the end of the range"),
    _case("cancelling values", (2, 4, 2, 32, 256), "alternating", "values of alternating sign nearly cancel"),
    _case("offset", (2, 4, 2, 64, 333), "offset", "a common offset in keys and values"),
    _case("long", (1, 2, 1, 64, 4099), "normal", "a long cache, prime length"),
    _case("misaligned", (2, 4, 2, 32, 65), "ragged", "base addresses are shifted by one element", layout="offset"),
    _case("rising scores", (2, 4, 2, 32, 190), "rising", "the running maximum changes at every position"),
    _case("falling scores", (2, 4, 2, 32, 127), "falling", "the first position keeps the maximum"),
    _case("wide values", (2, 4, 2, 32, 130), "wide", "magnitudes from 1e-4 to 1e4 in one cache"),
    _case("zero values", (2, 4, 2, 16, 64), "zeros", "zeros of both signs"),
    _case("denormal values", (2, 4, 2, 32, 96), "denormal", "two values in three are denormal"),
    _case("whole blocks", (3, 4, 2, 128, 256), "ragged", "a power of two in every size"),
    _case("65,537 sequences", (65537, 1, 1, 4, 2), "many", "more sequences than a grid's second axis can count"),
)

INTERPRET_CASES = (
    _case(
        "ragged",
        (4, 4, 2, 32, 61),
        "ragged",
        "lengths 0, 1, full and in between; NaN past each",
        smoke=True,
        dtype="float16",
    ),
    _case("bfloat16", (1, 4, 2, 64, 100), "normal", "the dtype of the workload"),
    _case("smallest", (1, 1, 1, 16, 1), "normal", "one head, one position", dtype="float16"),
    _case("prime length", (1, 4, 1, 32, 257), "normal", "one above a power of two, one cache head", dtype="float16"),
    _case("odd dim", (1, 2, 1, 48, 70), "ragged", "a head width that is no power of two", dtype="float16"),
    _case("group of 3", (1, 6, 2, 32, 50), "normal", "three query heads per cache head", dtype="float16"),
    _case("all empty", (2, 2, 1, 32, 40), "empty", "length 0 everywhere: zeros, never NaN", dtype="float16"),
    _case("all length 1", (2, 2, 1, 32, 40), "single", "the answer is the first value", dtype="float16"),
    _case("scale 1", (1, 4, 2, 16, 90), "normal", "another scale", attributes={"scale": 1.0}, dtype="float16"),
    _case("peaked", (1, 4, 2, 64, 130), "peaked", "one key dominates at a random place", dtype="float16"),
    _case(
        "large scores", (1, 4, 2, 32, 100), "large_scores", "overflow unless the maximum is subtracted", dtype="float16"
    ),
    _case("equal keys", (1, 4, 2, 32, 300), "equal", "the answer is the mean of the values", dtype="float16"),
    _case("rising scores", (1, 4, 2, 32, 90), "rising", "the running maximum changes all the time", dtype="float16"),
    _case("wide values", (1, 4, 2, 32, 64), "wide", "magnitudes from 1e-4 to 1e4 in one cache", dtype="float16"),
    _case("float32", (2, 4, 2, 32, 65), "ragged", "the tight bound of float32", dtype="float32"),
)

NUMERIC = ("incorrect_numeric",)
MUTATED = ("compile_error", "runtime_error", "policy_violation")
EITHER = ("incorrect_numeric", "incorrect_nan")

WRONG_KERNELS = (
    WrongKernel("tail_dropped", Backend.NUMBA, "tail dropped", EITHER),
    WrongKernel("seq_len_ignored", Backend.NUMBA, "length ignored", EITHER),
    WrongKernel("wrong_kv_head", Backend.NUMBA, "wrong kv head", EITHER),
    WrongKernel("scale_ignored", Backend.NUMBA, "wrong scale", NUMERIC),
    WrongKernel("empty_gives_nan", Backend.NUMBA, "length 0 mishandled", ("runtime_error", "incorrect_nan")),
    WrongKernel("max_ignored", Backend.NUMBA, "maximum not subtracted", EITHER),
    WrongKernel("rescale_forgotten", Backend.NUMBA, "running sum not rescaled", NUMERIC),
    WrongKernel("store_past_end", Backend.NUMBA, "out-of-bounds store", ("out_of_bounds",)),
    WrongKernel("input_mutated", Backend.NUMBA, "input mutated", MUTATED),
    WrongKernel("nondeterministic", Backend.NUMBA, "nondeterministic", ("incorrect_nondeterministic",)),
    WrongKernel("stale_answer", Backend.NUMBA, "answer replayed", EITHER),
    WrongKernel("tail_dropped", Backend.TRITON, "tail dropped", EITHER),
    WrongKernel("seq_len_ignored", Backend.TRITON, "length ignored", EITHER),
    WrongKernel("wrong_kv_head", Backend.TRITON, "wrong kv head", EITHER),
    WrongKernel("scale_ignored", Backend.TRITON, "wrong scale", NUMERIC),
    WrongKernel("empty_gives_nan", Backend.TRITON, "length 0 mishandled", ("incorrect_nan",)),
    WrongKernel("half_accumulate", Backend.TRITON, "narrow accumulator", EITHER),
    WrongKernel("store_past_end", Backend.TRITON, "out-of-bounds store", ("out_of_bounds", "runtime_error")),
)
