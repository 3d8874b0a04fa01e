"""Leaderboards show the medians behind their ratios, and how far a kernel is from the measured roof."""

from __future__ import annotations

from collections.abc import Callable

from django.test import Client
from gate_world import World

from apps.leaderboards.ranking import BoardRow
from apps.leaderboards.shapes import Cell, choose, shape_table
from apps.leaderboards.views.boards import weights_of

WEIGHTS = {"big": 0.8, "small": 0.2}


def row(team: str, rank: int | None, *medians: float, own: bool = False, library: bool = False,
        label: str = "playbook, round 1", ratio: float | None = 1.0) -> BoardRow:
    """A row with medians of the shapes in the order of the weights."""
    return BoardRow(team=team, own=own, label=label, approval="", tier="", score=ratio, ratio=ratio, low=None,
                    high=None, noise=None, evaluator_version="", measured_at=None, rank=rank, library=library,
                    medians_us=tuple(zip(WEIGHTS, medians, strict=False)))


ROWS = [
    row("Quick lib", None, 7.0, 1.5, library=True, label="library 1", ratio=3.0),
    row("A", 1, 8.0, 2.0), row("B", 2, 9.0, 1.0), row("C", 3, 9.5), row("D", 4, 9.9, 2.5),
    row("Us", 5, 10.0, 3.0, own=True), row("Us", 6, 11.0, 3.0, own=True),
    row("A", None, 20.0, 5.0, label="baseline"), row("E", None, 1.0, 1.0, label="noisy"),
    row("Absent", None, library=True, label="library", ratio=None),
]


def test_leaders_the_readers_best_the_baseline_and_libraries_stand_side_by_side() -> None:
    found = shape_table(ROWS, WEIGHTS)
    assert found is not None
    assert found.columns == (
        ("#1 A", "playbook, round 1"), ("#2 B", "playbook, round 1"), ("#3 C", "playbook, round 1"),
        ("#5 Us", "playbook, round 1"), ("baseline", "A"), ("Quick lib", "library 1"))
    big, small = found.rows
    assert big[:2] == ("big", 0.8) and [cell.best for cell in big[2]] == [False] * 5 + [True]
    assert small[2][1] == Cell(1.0, True) and small[2][2] == Cell(None)
    assert "E" not in {one.team for one in choose(ROWS)}, "a row in doubt is no column"


def test_nothing_timed_by_shape_is_no_table() -> None:
    assert shape_table([], WEIGHTS) is None
    assert shape_table([row("A", 1)], WEIGHTS) is None
    assert shape_table(ROWS, {"another": 1.0}) is None


def test_a_board_shows_them_to_every_team(world: World, sign_in: Callable[..., Client]) -> None:
    answer = sign_in(world.vic).get("/leaderboards/rms_norm/")
    weights = weights_of(answer.context["board"])
    assert abs(sum(weights.values()) - 1.0) < 1e-9 and list(weights.values()) == sorted(weights.values(), reverse=True)
    assert all(one.medians_us for one in answer.context["rows"] if one.rank)
    assert "Of measured roof" in answer.content.decode()
