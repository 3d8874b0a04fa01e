"""The pattern of wrong elements: which code, which words."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from harness.evaluation.judge.compare import compare
from harness.evaluation.judge.oracle import Expected
from harness.evaluation.judge.words import TILES, Lengths, pattern_of

AXES = ("rows", "cols")
DECODE = ("batch", "q_heads", "dim")


def mask(shape: tuple[int, ...], *place: object) -> torch.Tensor:
    wrong = torch.zeros(shape, dtype=torch.bool)
    wrong[place] = True
    return wrong


@pytest.mark.parametrize(
    ("wrong", "axes", "code", "words"),
    [
        (mask((6, 512), slice(None), slice(128, 256)), AXES, "tile_wrong",
         "only in columns 128 to 255 of 512, in whole blocks of 128"),
        (mask((6, 512), slice(None), slice(0, 64)), AXES, "tile_wrong",
         "only in the first 64 of 512 columns, in whole blocks of 64"),
        (mask((64, 512), slice(32, 64), slice(96, 128)), AXES, "tile_wrong", "only in the last 32 of 64 rows"),
        (mask((6, 300), slice(None), [*range(32, 64), *range(256, 300)]), AXES, "tile_wrong",
         "in 3 blocks of 32 columns, the first at 32"),
        (mask((6, 512), slice(None), slice(130, 256)), AXES, "numeric_wrong", "only in columns 130 to 255 of 512"),
        (mask((6, 512), slice(None), slice(500, 512)), AXES, "tail_wrong", "only in the last 12 of 512 columns"),
        (mask((64, 9), slice(3, 64, 4)), AXES, "every_nth_wrong", "in every 4th row from 3"),
        (mask((6, 100), slice(None), slice(1, 100, 3)), AXES, "every_nth_wrong", "in every 3rd column from 1"),
        (mask((6, 90), slice(None), slice(0, 90, 11)), AXES, "every_nth_wrong", "in every 11th column from 0"),
        (mask((6, 90), slice(None), slice(0, 90, 22)), AXES, "every_nth_wrong", "in every 22nd column from 0"),
        (mask((2, 8, 4), slice(None), slice(1, 8, 2)), DECODE, "head_wrong", "in every 2nd query head from 1"),
        (mask((5, 4, 4), 3), DECODE, "row_wrong", "only in sequence 3 of 5"),
        (mask((6, 90), [0, 3, 4], [2, 7, 9]), AXES, "row_wrong", "in 3 of 6 rows and in 3 of 90 columns"),
    ],
)
def test_every_pattern_has_its_code(wrong: torch.Tensor, axes: tuple[str, ...], code: str, words: str) -> None:
    pattern = pattern_of(wrong, axes)
    assert (pattern.code, words in pattern.words) == (code, True), pattern


@given(st.sampled_from(TILES), st.integers(2, 5), st.data())
def test_any_block_of_columns_is_a_tile_of_its_own_size(tile: int, blocks: int, data: st.DataObject) -> None:
    block = data.draw(st.integers(0, blocks - 2))
    wrong = mask((3, blocks * tile), slice(None), slice(block * tile, (block + 1) * tile))
    pattern = pattern_of(wrong, AXES)
    assert pattern.code == "tile_wrong"
    assert f"in whole blocks of {tile}" in pattern.words


@given(st.lists(st.integers(1, 500), min_size=4, max_size=9, unique=True), st.data())
def test_a_length_that_parts_wrong_from_right_is_named(lengths: list[int], data: st.DataObject) -> None:
    edge = data.draw(st.sampled_from(sorted(lengths)[2:-1]))
    longer = data.draw(st.booleans())
    chosen = [index for index, value in enumerate(lengths) if (value >= edge) is longer]
    pattern = pattern_of(
        mask((len(lengths), 2, 4), chosen), DECODE, Lengths("batch", "max_seq", torch.tensor(lengths))
    )
    assert pattern.code == "length_wrong"
    shorter = max(value for value in lengths if value < edge)
    what = f"of at least {edge} positions" if longer else f"of at most {shorter} positions"
    assert f"only in sequences {what}" in pattern.words


def test_lengths_that_part_nothing_leave_the_other_words() -> None:
    lengths = Lengths("batch", "max_seq", torch.tensor([5, 9, 7, 7]))
    assert pattern_of(mask((4, 2, 4), [0, 1]), DECODE, lengths).code == "row_wrong"
    assert pattern_of(mask((4, 2, 4), slice(None), 1), DECODE, lengths).code == "head_wrong"
    two = Lengths("batch", "max_seq", torch.tensor([5, 9, 9, 9]))
    assert pattern_of(mask((4, 2, 4), 0), DECODE, two).code == "row_wrong"


def test_empty_sequences_say_nothing_about_lengths() -> None:
    lengths = Lengths("batch", "max_seq", torch.tensor([0, 61, 1, 60, 0]))
    every = pattern_of(mask((5, 2, 4), [1, 2, 3]), DECODE, lengths)
    assert (every.code, "in every sequence that is not empty" in every.words) == ("all_wrong", True)
    head = pattern_of(mask((5, 2, 4), [1, 2, 3], 1), DECODE, lengths)
    assert head.code == "head_wrong"
    assert "in every sequence that is not empty and only in query head 1 of 2 (the last)" in head.words
    empty = pattern_of(mask((5, 2, 4), [0, 4]), DECODE, lengths)
    assert (empty.code, "only in sequences of at most 0 positions" in empty.words) == ("length_wrong", True)


@pytest.mark.parametrize(("dtype", "largest"), [(torch.float16, 65504.0), (torch.float32, 3.4028234663852886e38)])
def test_the_end_of_the_range_may_be_met_from_either_side(dtype: torch.dtype, largest: float) -> None:
    over = largest * (1 + 1e-3)
    bound = torch.tensor([[over * 2e-3, over * 2e-3, 1e-3]], dtype=torch.float64)
    answer = Expected(torch.tensor([[over, -over, 1.0]], dtype=torch.float64), bound, None)
    untouched = torch.zeros(1, 3, dtype=torch.bool)

    def judged(*values: float) -> str | None:
        finding = compare("out", AXES, torch.tensor([values], dtype=dtype), untouched, answer).finding
        return None if finding is None else finding.code

    assert judged(largest, -largest, 1.0) is None
    assert judged(torch.inf, -torch.inf, 1.0) is None
    assert judged(-torch.inf, -torch.inf, 1.0) == "inf_wrong"
    assert judged(torch.inf, -torch.inf, torch.inf) == "inf_wrong"
    assert judged(torch.nan, -torch.inf, 1.0) == "nan_wrong"
    assert judged(largest / 2, -torch.inf, 1.0) is not None
