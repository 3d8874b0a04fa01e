"""Correctness cases of rope, written by people, and the wrong kernels that must be refused."""

from __future__ import annotations

from harness.domain.vocabulary import Backend
from harness.operators.base import Case, WrongKernel


def sizes(batch: int, seq: int, q_heads: int, kv_heads: int, half: int) -> dict[str, int]:
    """All dimensions: a head is twice as wide as the angles of a position."""
    return {"batch": batch, "seq": seq, "q_heads": q_heads, "kv_heads": kv_heads, "dim": 2 * half, "half": half}


def _case(name: str, dims: tuple[int, int, int, int, int], regime: str, reason: str, **more: object) -> Case:
    """``dims``: batch, seq, q_heads, kv_heads and half of a head's width."""
    return Case(name, sizes(*dims), regime, reason, **more)  # type: ignore[arg-type]


CASES = (
    _case("B2 S3 H6/2 half 37", (2, 3, 6, 2, 37), "normal", "prime halves: the tail of every head", smoke=True),
    _case("smallest", (1, 1, 1, 1, 1), "normal", "one pair each: the smallest problem"),
    _case("half 1", (3, 5, 2, 1, 1), "normal", "heads of one pair"),
    _case("half 64", (2, 4, 8, 2, 64), "normal", "the usual width, a power of two"),
    _case("half 65", (1, 3, 4, 1, 65), "normal", "one pair above a power of two"),
    _case("half 127", (1, 2, 3, 3, 127), "negative", "one below a power of two, all negative"),
    _case("half 256", (1, 2, 2, 1, 256), "normal", "heads of 512"),
    _case("one sequence", (1, 67, 4, 2, 16), "normal", "a prime number of positions"),
    _case("one position", (13, 1, 4, 2, 16), "normal", "decoding: every sequence at one position"),
    _case("many positions", (1, 1031, 1, 1, 8), "normal", "more positions than a block, one head"),
    _case("many sequences", (65537, 1, 1, 1, 1), "normal", "more sequences than a grid's second axis can count"),
    _case("odd heads", (2, 3, 7, 5, 24), "normal", "head counts that are no multiples of each other"),
    _case("fewer query heads", (2, 3, 2, 6, 24), "normal", "more heads in k than in q"),
    _case("many heads", (1, 2, 71, 33, 16), "normal", "more heads than a block, no powers of two"),
    _case("any numbers", (2, 5, 4, 2, 40), "free_angles", "cos and sin of no angle"),
    _case("special angles", (2, 6, 3, 2, 20), "special_angles", "NaN and infinity in cos and sin at single places"),
    _case("offset", (2, 4, 4, 2, 32), "offset", "products that cancel nearly all of each other"),
    _case("wide", (2, 4, 4, 2, 48), "wide", "magnitudes from 1e-4 to 1e4 in one head"),
    _case("huge", (1, 4, 4, 2, 32), "huge", "huge values"),
    _case("largest", (1, 3, 4, 2, 33), "largest", "values near the end of the range"),
    _case("tiny", (1, 4, 4, 2, 32), "tiny", "tiny values"),
    _case("zeros", (1, 4, 4, 2, 17), "zeros", "zeros of both signs"),
    _case("equal", (2, 4, 4, 2, 32), "equal", "both halves alike"),
    _case("one_hot", (2, 5, 4, 2, 31), "one_hot", "a single non-zero entry a head: a pair of results"),
    _case("spike", (2, 4, 4, 2, 50), "spike", "one value a thousand times larger than the rest"),
    _case("nan", (3, 5, 4, 2, 20), "nan", "a NaN poisons its own pair and no other"),
    _case("neg_inf", (3, 5, 4, 2, 20), "neg_inf", "-inf makes its own pair infinite and nothing else"),
    _case("denormal", (1, 4, 4, 2, 32), "denormal", "two values in three are denormal"),
    _case("misaligned", (2, 3, 4, 2, 32), "normal", "the base addresses are shifted by one element", layout="offset"),
)

INTERPRET_CASES = (
    _case("B2 S3 H3/2 half 37", (2, 3, 3, 2, 37), "normal", "prime halves: the tail of every head", smoke=True),
    _case("smallest", (1, 1, 1, 1, 1), "normal", "one pair each: the smallest problem"),
    _case("half 65", (1, 3, 4, 1, 65), "normal", "one pair above a power of two"),
    _case("half 64", (1, 3, 9, 3, 64), "normal", "the usual width, a power of two"),
    _case("one position", (7, 1, 4, 2, 16), "normal", "decoding: every sequence at one position"),
    _case("many positions", (1, 31, 1, 1, 8), "normal", "a prime number of positions, one head"),
    _case("fewer query heads", (1, 3, 2, 5, 24), "normal", "more heads in k than in q"),
    _case("float32", (1, 3, 4, 2, 33), "wide", "the tight bound of float32", dtype="float32"),
    _case("float16", (1, 3, 4, 2, 33), "normal", "products of float16 in float32", dtype="float16"),
    _case("any numbers", (1, 5, 3, 2, 40), "free_angles", "cos and sin of no angle"),
    _case("special angles", (2, 5, 3, 2, 20), "special_angles", "NaN and infinity in cos and sin at single places"),
    _case("offset", (1, 4, 4, 2, 32), "offset", "products that cancel nearly all of each other"),
    _case("one_hot", (2, 3, 4, 2, 31), "one_hot", "a single non-zero entry a head: a pair of results"),
    _case("nan", (2, 3, 4, 2, 20), "nan", "a NaN poisons its own pair and no other"),
)

NUMERIC = ("incorrect_numeric",)
EITHER = ("incorrect_numeric", "incorrect_nan")
MUTATED = ("compile_error", "runtime_error", "policy_violation")

WRONG_KERNELS = (
    WrongKernel("tail_dropped", Backend.NUMBA, "tail dropped", NUMERIC),
    WrongKernel("sign_wrong", Backend.NUMBA, "wrong sign", NUMERIC),
    WrongKernel("interleaved", Backend.NUMBA, "wrong pairs", EITHER),
    WrongKernel("position_ignored", Backend.NUMBA, "wrong position", EITHER),
    WrongKernel("keys_not_turned", Backend.NUMBA, "second output not computed", NUMERIC),
    WrongKernel("heads_left_out", Backend.NUMBA, "heads left out", NUMERIC),
    WrongKernel("narrow_products", Backend.NUMBA, "narrow intermediate", NUMERIC),
    WrongKernel("nan_swallowed", Backend.NUMBA, "NaN swallowed", ("incorrect_nan",)),
    WrongKernel("store_past_end", Backend.NUMBA, "out-of-bounds store", ("out_of_bounds",)),
    WrongKernel("input_mutated", Backend.NUMBA, "input mutated", MUTATED),
    WrongKernel("nondeterministic", Backend.NUMBA, "nondeterministic", ("incorrect_nondeterministic",)),
    WrongKernel("stale_answer", Backend.NUMBA, "answer replayed", EITHER),
    WrongKernel("tail_dropped", Backend.TRITON, "tail dropped", NUMERIC),
    WrongKernel("sign_wrong", Backend.TRITON, "wrong sign", NUMERIC),
    WrongKernel("interleaved", Backend.TRITON, "wrong pairs", EITHER),
    WrongKernel("position_ignored", Backend.TRITON, "wrong position", EITHER),
    WrongKernel("heads_as_positions", Backend.TRITON, "heads and positions mixed up", EITHER),
    WrongKernel("keys_left_out", Backend.TRITON, "second output not computed", NUMERIC),
    WrongKernel("half_products", Backend.TRITON, "narrow intermediate", NUMERIC),
    WrongKernel("nan_swallowed", Backend.TRITON, "NaN swallowed", ("incorrect_nan",)),
    WrongKernel("store_past_end", Backend.TRITON, "out-of-bounds store", ("out_of_bounds", "runtime_error")),
)
