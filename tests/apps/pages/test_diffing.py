"""Properties of the diff: nothing is lost, nothing is doubled, marks and folds change no text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from apps.reviews.diffing import Fold, highlight, split_diff
from apps.reviews.diffing.intraline import align, changed_ranges

LINE = st.text(st.sampled_from("ab x=+(1)#'\"\t:é<&"), max_size=14)
SOURCE = st.lists(LINE, max_size=25).map("\n".join)


@given(SOURCE)
def test_highlighting_gives_the_source_back(source: str) -> None:
    lines = highlight(source)
    assert "\n".join("".join(piece.text for piece in line) for line in lines) == source


@given(SOURCE, SOURCE)
def test_both_sides_can_be_read_back_line_by_line(old: str, new: str) -> None:
    diff = split_diff(old, new)
    left = [row.old for row in diff.rows if row.old]
    right = [row.new for row in diff.rows if row.new]
    for side, source in ((left, old), (right, new)):
        assert [line.number for line in side] == list(range(1, len(side) + 1))
        lines = source.split("\n")
        assert [line.text for line in side] == (lines[:-1] if lines[-1] == "" else lines)


@given(SOURCE, SOURCE)
def test_rows_that_say_same_are_the_same_and_counts_agree(old: str, new: str) -> None:
    diff = split_diff(old, new)
    for row in diff.rows:
        if row.kind == "same":
            assert row.old and row.new and row.old.text == row.new.text
    assert diff.added == sum(row.kind in ("added", "changed") for row in diff.rows)
    assert diff.removed == sum(row.kind in ("removed", "changed") for row in diff.rows)
    assert [row.change for row in diff.rows if row.change] == list(range(1, diff.changes + 1))


@given(SOURCE)
def test_equal_sources_have_no_change(source: str) -> None:
    diff = split_diff(source, source)
    assert (diff.added, diff.removed, diff.changes) == (0, 0, 0)


@given(SOURCE, SOURCE, st.integers(1, 25))
def test_a_pinned_line_is_never_folded(old: str, new: str, line: int) -> None:
    diff = split_diff(old, new, new_pins={line: ["pin"]})
    shown = [row for part in diff.parts if not isinstance(part, Fold) for row in [part]]
    numbers = {row.new.number for row in diff.rows if row.new}
    assert (line in numbers) == any(row.pins == ["pin"] for row in shown)
    assert not any(row.pins for part in diff.parts if isinstance(part, Fold) for row in part.rows)


@given(st.lists(LINE, max_size=8), st.lists(LINE, max_size=8))
def test_alignment_keeps_order_and_uses_every_line_once(old: list[str], new: list[str]) -> None:
    pairs = align(old, new)
    assert [i for i, _ in pairs if i is not None] == list(range(len(old)))
    assert [j for _, j in pairs if j is not None] == list(range(len(new)))


@given(LINE, LINE)
def test_what_lies_outside_the_marks_is_common_to_both(old: str, new: str) -> None:
    gone, come = changed_ranges(old, new)
    if not gone and not come:
        return
    keep = [
        "".join(c for at, c in enumerate(text) if not any(low <= at < high for low, high in spans))
        for text, spans in ((old, gone), (new, come))
    ]
    assert keep[0] == keep[1]


def test_a_changed_word_is_marked_and_the_rest_is_not() -> None:
    diff = split_diff("a = load(x, 16)\n", "a = load(x, 32)\n")
    row = diff.rows[0]
    assert row.kind == "changed"
    assert [piece.text for piece in row.old.pieces if piece.marked] == ["16"]
    assert [piece.text for piece in row.new.pieces if piece.marked] == ["32"]


def test_long_unchanged_stretches_fold_around_a_change() -> None:
    old = "\n".join(f"line{i}" for i in range(40))
    diff = split_diff(old, old.replace("line20", "line20 + 1"))
    folds = [part for part in diff.parts if isinstance(part, Fold)]
    assert [(part.first, part.last) for part in folds] == [(1, 17), (25, 40)]
