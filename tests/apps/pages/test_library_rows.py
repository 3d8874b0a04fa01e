"""Libraries measured in an environment class are reference rows of its boards, in their place and without one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from gate_world import ENVIRONMENT, World

from apps.bridge import api
from apps.leaderboards.ranking import BoardRow, with_libraries
from harness.domain.codec import schema
from harness.evaluation.library import path_of

SHAPES = [point["label"] for point in api.operator("rms_norm").workloads[0].shapes["numba"]]


def peers(**times: float | None) -> dict[str, Any]:
    """A document of peers whose sides take these times on every shape; ``None`` is absent."""
    document: dict[str, Any] = json.loads(json.dumps(schema("peers")["examples"][0]))
    blank = dict.fromkeys(("median_us", "p10", "p90", "cv", "gbps", "tflops", "roof_share", "error", "worst_ratio",
                           "right", "graph", "version", "kernel"))
    document |= {"backend": "numba", "workload": "llm", "clocks": []}
    document["environment"]["class"] = ENVIRONMENT
    document["rows"] = [
        {"operator": "rms_norm", "shape": shape, "dtype": "float32", **blank, "name": name.replace("_", " "),
         "side": "ours" if name == "baseline" else "peer", "median_us": took, "n": 100 if took else 0,
         "round_us": [], "detail": "", "right": True if took else None,
         "absent": None if took else "not installed here"}
        for shape in SHAPES for name, took in times.items()]
    return document


@pytest.fixture
def measured() -> Any:
    """Write a document of peers for the tests' environment class; it goes afterwards."""
    path = path_of(ENVIRONMENT)

    def write(text: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    yield write
    path.unlink(missing_ok=True)


def test_libraries_stand_in_their_place_without_one(
    world: World, sign_in: Callable[..., Client], measured: Callable[[str], Path]
) -> None:
    without = sign_in(world.vic).get("/leaderboards/rms_norm/").context["rows"]
    measured(json.dumps(peers(baseline=10.0, torch_eager=20.0, fast_one=5.0, gone=None)))
    answer = sign_in(world.vic).get("/leaderboards/rms_norm/")
    rows = {row.team: row for row in answer.context["rows"] if row.library}
    assert rows["torch eager"].ratio == pytest.approx(0.5) and rows["fast one"].ratio == pytest.approx(2.0)
    assert rows["gone"].ratio is None and rows["gone"].why_unranked == "not installed here"
    assert all(row.rank is None for row in rows.values())
    ranked = [(row.rank, row.kernel) for row in answer.context["rows"] if row.rank]
    assert ranked == [(row.rank, row.kernel) for row in without if row.rank]
    order = [row.team for row in answer.context["rows"] if row.rank or row.library]
    assert order[0] == "fast one"
    text = answer.content.decode()
    assert "torch eager" in text and "absent" in text and "not installed here" in text
    hidden = sign_in(world.vic).get("/leaderboards/rms_norm/?unranked=no").content.decode()
    assert "torch eager" in hidden


@pytest.mark.parametrize("text", ["", "{", "[]", '{"rows": 3}'])
def test_a_document_that_cannot_be_read_shows_no_library(
    world: World, sign_in: Callable[..., Client], measured: Callable[[str], Path], text: str
) -> None:
    measured(text)
    answer = sign_in(world.vic).get("/leaderboards/rms_norm/")
    assert answer.status_code == 200 and not any(row.library for row in answer.context["rows"])


def test_another_class_or_workload_shows_no_library(measured: Callable[[str], Path]) -> None:
    document = peers(baseline=10.0, torch_eager=20.0)
    document["environment"]["class"] = "another"
    measured(json.dumps(document))
    assert api.libraries(ENVIRONMENT, "rms_norm", "llm") == ()
    assert api.libraries("nowhere", "rms_norm", "llm") == ()


def test_a_library_that_lacks_a_shape_or_is_wrong_has_no_ratio(measured: Callable[[str], Path]) -> None:
    document = peers(baseline=10.0, torch_eager=20.0, wrong=5.0)
    document["rows"] = [row for row in document["rows"] if (row["name"], row["shape"]) != ("torch eager", SHAPES[0])]
    for row in document["rows"]:
        row["right"] = row["name"] != "wrong"
    measured(json.dumps(document))
    found = {one.name: one for one in api.libraries(ENVIRONMENT, "rms_norm", "llm")}
    assert found["torch eager"].over_baseline is None and found["torch eager"].shapes == len(SHAPES) - 1
    assert found["wrong"].over_baseline is None and found["wrong"].shapes == 0


def test_the_order_of_ranked_rows_never_changes() -> None:
    def made(name: str, ratio: float | None, rank: int | None = None, library: bool = False) -> BoardRow:
        return BoardRow(team=name, own=False, label="", approval="", tier="", score=ratio, ratio=ratio, low=None,
                        high=None, noise=None, evaluator_version="", measured_at=None, rank=rank, library=library)

    rows = [made("a", 3.0, 1), made("b", 2.0, 2), made("c", 1.0)]
    shown = with_libraries(rows, [made("lib1", 2.5, library=True), made("lib2", 0.5, library=True),
                                  made("lib3", None, library=True), made("lib4", 9.0, library=True)])
    assert [row.team for row in shown] == ["lib4", "a", "lib1", "b", "lib2", "c", "lib3"]
