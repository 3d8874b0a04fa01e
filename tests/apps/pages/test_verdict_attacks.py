"""What a verdict, its samples and its files let nobody do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from django.test import Client
from gate_world import HARDWARE, World, medium

from apps.bridge.runner.responses import ResponseInvalid, _load
from apps.kernels.exports import samples_csv
from apps.kernels.models import Verdict
from apps.kernels.verdicts import verdict_import
from apps.leaderboards.selectors import board

SignIn = Callable[..., Client]


def test_no_name_of_a_shape_runs_as_a_formula() -> None:
    """Operators of one's own name their shapes and roles themselves."""
    evil = "=cmd|' /C calc'!A0"
    rounds = [{"other": [1.0], "candidate": [1.0]}]
    text = samples_csv({"shapes": [{"shape": evil, "versus": {"@role": rounds}, "aa": rounds, "cold": [1.0],
                                    "hot": {"+side": [1.0]}}]})
    for line in text.splitlines()[1:]:
        assert line.startswith("'=cmd")
    assert ",'@role," in text and ",'+side," in text and ",1.0" in text


def test_files_of_a_verdict_are_for_its_team_only(world: World, sign_in: SignIn) -> None:
    verdict = Verdict.objects.filter(samples__isnull=False).latest("id")
    for name in ("", "verdict.json", "samples.json", "samples.csv"):
        address = f"/verdicts/{verdict.pk}/{name}"
        assert sign_in(world.vic).get(address).status_code == 200, name
        assert sign_in(world.stranger).get(address).status_code == 404, name
        assert Client().get(address).status_code in (302, 403), name


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_what_is_no_number_of_json_is_no_answer(word: str, tmp_path: Path) -> None:
    """It passed the schema, and the database refused the row: the worker fell over it."""
    path = tmp_path / "answer.json"
    path.write_text(json.dumps({"score": 0.0}).replace("0.0", word))
    with pytest.raises(ResponseInvalid, match="no number of JSON"):
        _load(path, 1000, "verdict")


def test_a_time_that_nobody_held_against_a_clock_is_not_ranked(world: World) -> None:
    world = world.new_campaign()
    world.measure_baseline()
    world.round(medium("8"), evidence="claimed", ratios={"incumbent": 3.0, "baseline": 3.0})
    assert Verdict.objects.latest("id").evidence == "claimed"
    found = board(world.ada, operator="rms_norm", backend="numba", hardware=HARDWARE, workload="llm")
    claimed = [row for row in found.rows if row.evidence == "claimed"]
    assert claimed and all(row.rank is None and "reported" in row.why_unranked for row in claimed)


def test_an_import_takes_no_figure_of_ours_from_the_board(world: World) -> None:
    world = world.new_campaign()
    world.measure_baseline()
    verdict = world.round(medium("8"), ratios={"incumbent": 1.3, "baseline": 1.3})
    assert verdict.samples is not None
    verdict_import(kernel=verdict.kernel, team=world.team, document=verdict.document, workload="llm", by=world.ada,
                   samples=bytes(verdict.samples.data), origin="a colleague's machine")
    found = board(world.ada, operator="rms_norm", backend="numba", hardware=HARDWARE, workload="llm")
    row = next(row for row in found.rows if row.kernel == verdict.kernel_id)
    assert row.verdict == verdict.pk and not row.foreign and row.rank is not None
