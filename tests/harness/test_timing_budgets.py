"""The latency budgets and the benchmark that prints them."""

from __future__ import annotations

import pytest

from benchmarks import budgets, evaluator
from benchmarks.series import Series
from harness.domain.vocabulary import Stage


@pytest.mark.parametrize("path", list(budgets.STAGES))
def test_the_stages_of_a_path_are_stages_and_add_up_to_its_total(path):
    stages = budgets.STAGES[path]
    assert set(stages) <= {str(stage) for stage in Stage}
    assert sum(stages.values()) == pytest.approx(budgets.TOTAL_S[path])
    assert stages["static"] == budgets.STATIC_S


def line(operator: str, seconds: float, **more: object) -> dict:
    return {"path": "numba", "operator": operator, "number": 0, "outcome": "passed", "text": None, "seconds": seconds,
            "stages": {"static": 0.01, "recheck": seconds - 1}, "held": None, "load": 0.5, **more}


def test_stages_over_their_budget_and_refused_kernels_stand_out(tmp_path, capsys):
    series = Series(tmp_path / "evaluator.jsonl", {"kind": "evaluator"})
    late = line("softmax", 31.0, outcome="timeout", text="Too late.")
    for one in (line("rms_norm", 9.0), line("rms_norm", 8.0), late):
        series.add(one)
    evaluator.show(series)
    printed = capsys.readouterr().out.splitlines()
    recheck = next(text for text in printed if text.startswith("recheck"))
    assert recheck.split() == ["recheck", "8.000", "7.000", "30.000", "3", "10"]
    assert any(text.startswith("verdict of softmax") and text.endswith("over") for text in printed)
    assert not any(text.startswith("verdict of rms_norm") and text.endswith("over") for text in printed)
    assert "not passed: softmax timeout: Too late." in printed
    assert any(text.startswith("refused, warm") and text.endswith("not measured") for text in printed)


def test_what_was_measured_is_not_measured_again(tmp_path, monkeypatch):
    series = Series(tmp_path / "evaluator.jsonl", {"kind": "evaluator"})
    for number in range(3):
        series.add(line("rms_norm", 9.0, number=number))
    monkeypatch.setattr("harness.evaluation.pipeline.evaluate", lambda *_: pytest.fail("measured again"))
    evaluator.measure(series, evaluator.Backend.NUMBA, "rms_norm", 3)
    assert len(series.lines) == 3


def test_the_candidate_that_is_timed_is_a_real_change_of_the_baseline():
    spec = evaluator.registry.get("rms_norm")
    request = evaluator.request_of("rms_norm", evaluator.Backend.NUMBA, spec.baseline(evaluator.Backend.NUMBA)
                                   + evaluator.MARK, "cpu-x-1t")
    assert request.candidate.digest != request.against[0].digest
