"""Configurations are really recorded in the sandbox and compiled behind the compiler's walls, with no device."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.agents.autotune.space import axes_of, buckets_of
from harness.agents.playbook import edit
from harness.cli import main
from harness.domain.goal import AgentChoice, Goal
from harness.domain.vocabulary import Backend
from harness.operators import registry
from harness.search.planner import FarmPlanner, planner_for

pytestmark = pytest.mark.sandbox


def test_a_search_without_a_gpu_builds_rules_out_and_times_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]
                                                                  ) -> None:
    path = tmp_path / "journal.jsonl"
    arguments = ["autotune", "--operator", "rms_norm", "--hardware", "nvidia-h200", "--space", "4", "--seed", "2",
                 "--compile-only", "--json", "--resume", str(path)]
    assert main(arguments) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["points"] == 4 and told["configurations"] == 4 * len(told["buckets"]) and told["best"] == {}
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    built = [row for row in rows if row["kind"] == "built"]
    assert {"arithmetic"} <= set(told["ruled_out"]) and told["configurations_timed"] == 0
    assert all((row["registers"] is not None) == (row["problem"] in ("", "limits", "resources")) for row in built)
    assert any(row["occupancy"] for row in built)
    assert main(arguments) == 0  # nothing is left to build
    assert json.loads(capsys.readouterr().out)["configurations"] == told["configurations"]
    assert len(path.read_text("utf-8").splitlines()) == len(rows) + 1


def test_a_search_that_needs_a_gpu_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["autotune", "--operator", "rms_norm", "--hardware", "nvidia-a100"]) == 2
    assert "--compile-only" in capsys.readouterr().err


def test_a_planner_names_what_breaks_a_limit() -> None:
    spec = registry.get("softmax")
    source = spec.baseline(Backend.TRITON)
    shapes = buckets_of(spec, Backend.TRITON, "llm")["long"]
    asked = [(edit.set_params(source, {"BLOCK": block, "num_warps": warps}), shapes)
             for block, warps in ((1024, 8), (16384, 2))]
    fine, broken = FarmPlanner().problems(spec, "llm", "nvidia-h200", asked)
    assert fine == "" and broken
    goal = Goal("softmax", Backend.TRITON, "nvidia-h200", "llm", agent=AgentChoice("autotune"))
    assert planner_for(goal) is not None and axes_of(spec, Backend.TRITON, source)
    assert planner_for(Goal("softmax", Backend.NUMBA, "cpu-test-1t", "llm", agent=AgentChoice("autotune"))) is None
