"""A campaign of a report that was interrupted goes on where it was, and ends as one that was not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.domain.errors import UsageError
from harness.domain.report import ReportOperator
from harness.report.campaigns import CURVE
from harness.report.settings import Folder
from tests.harness.campaign.fake_evaluator import FakeEvaluator
from tests.harness.report.stand_ins import Sessions, report_run

ONE = {"operators": ("rms_norm",), "agents": ("playbook",)}


@pytest.fixture(autouse=True)
def var(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELOPT_VAR", str(tmp_path / "var"))


class Killed(FakeEvaluator):
    """Its process is ended in the middle of an evaluation."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.after = after

    def __call__(self, request: Any) -> Any:
        if len(self.requests) == self.after:
            raise SystemExit(143)
        return super().__call__(request)


def _timeless(operator: ReportOperator) -> Any:
    campaign = operator.campaigns[0]
    steps = tuple(replace(step, seconds=0.0) for step in campaign.steps)
    return replace(campaign, seconds=0.0, steps=steps), operator.sources, [kernel.digest for kernel in operator.kernels]


def _killed(folder: Path, after: int) -> None:
    run = report_run(folder, Sessions(), evaluator=Killed(after), **ONE)
    with pytest.raises(SystemExit):
        run.run()


@pytest.mark.parametrize("after", [1, 2, 3])
def test_a_killed_campaign_goes_on_and_judges_nothing_twice(tmp_path: Path, after: int) -> None:
    whole, evaluator = report_run(tmp_path / "whole", Sessions(), **ONE), FakeEvaluator()
    whole.run()
    _killed(tmp_path / "cut", after)
    later = report_run(tmp_path / "cut", Sessions(), evaluator=evaluator, **ONE)
    later.run()
    report = later.report()
    assert report.complete
    assert _timeless(report.operators[0]) == _timeless(whole.report().operators[0])
    final = 1 if report.operators[0].campaigns[0].final.outcome is not None else 0
    assert after + len(evaluator.requests) == report.operators[0].campaigns[0].evaluations + final


def test_what_a_cut_campaign_had_is_shown_and_named_as_cut(tmp_path: Path) -> None:
    _killed(tmp_path / "cut", 3)
    report = report_run(tmp_path / "cut", Sessions(), **ONE).report()
    assert len(report.operators[0].campaigns[0].steps) == 3
    assert "rms_norm: the campaign of playbook was cut after 2 rounds; --resume goes on with it." in report.missing


def test_a_run_whose_budget_is_spent_leaves_the_campaign_for_the_next_one(tmp_path: Path) -> None:
    now = [0.0]

    def clock() -> float:
        now[0] += 10.0
        return now[0]

    class Slow(FakeEvaluator):
        def __call__(self, request: Any) -> Any:
            monkey.setattr("harness.report.campaigns.time.monotonic", lambda: 1e9)
            return super().__call__(request)

    with pytest.MonkeyPatch.context() as monkey:
        cut = report_run(tmp_path / "cut", Sessions(), evaluator=Slow(), budget_s=60.0, clock=clock,
                         phases=("campaigns",), **ONE)
        cut.run()
    assert len(cut.report().operators[0].campaigns[0].steps) == 1 and not cut.report().complete
    later = report_run(tmp_path / "cut", Sessions(), phases=("campaigns",), **ONE)
    later.run()
    assert later.report().complete and len(later.report().operators[0].campaigns[0].steps) > 1


@pytest.mark.parametrize("damage", ["torn line", "a point too many"])
def test_what_a_killed_process_left_half_written_is_left_out(tmp_path: Path, damage: str) -> None:
    _killed(tmp_path / "cut", 3)
    place = tmp_path / "cut/operators/rms_norm/playbook"
    if damage == "torn line":
        with (place / "results.jsonl").open("a") as lines:
            lines.write('{"kind": "Propo')
    else:
        curve = json.loads((place / CURVE).read_text())
        (place / CURVE).write_text(json.dumps({"points": [*curve["points"], curve["points"][-1]]}))
    evaluator = FakeEvaluator()
    later = report_run(tmp_path / "cut", Sessions(), evaluator=evaluator, **ONE)
    later.run()
    steps = later.report().operators[0].campaigns[0].steps
    assert [step.evaluation for step in steps] == list(range(1, len(steps) + 1))
    assert len(evaluator.requests) in (len(steps) - 3, len(steps) - 2)
    for line in (place / "results.jsonl").read_text().splitlines():
        json.loads(line)


@pytest.mark.parametrize("strange", ["goal", "curve", "results"])
def test_a_folder_that_does_not_fit_is_begun_anew(tmp_path: Path, strange: str) -> None:
    _killed(tmp_path / "cut", 3)
    place = tmp_path / "cut/operators/rms_norm/playbook"
    if strange == "goal":
        goal = json.loads((place / "goal.json").read_text())
        (place / "goal.json").write_text(json.dumps({**goal, "workload": "other"}))
    elif strange == "curve":
        (place / CURVE).unlink()
    else:
        (place / "results.jsonl").write_text('{"kind": "Nothing", "data": {}}\n')
    later = report_run(tmp_path / "cut", Sessions(), **ONE)
    later.run()
    steps = later.report().operators[0].campaigns[0].steps
    assert [step.evaluation for step in steps] == list(range(1, len(steps) + 1)) and later.report().complete


def test_a_better_kernel_of_a_campaign_that_went_on_is_timed_beside_the_libraries(tmp_path: Path) -> None:
    whole = report_run(tmp_path / "report", Sessions(), **ONE)
    whole.run()
    folder = Folder(tmp_path / "report")
    final = folder.read("operators/rms_norm/final.json") or {}
    rows = [{**row, "kernel": None} if row["name"] == "playbook" else row for row in final["rows"]]
    folder.write("operators/rms_norm/final.json", {**final, "rows": rows})
    sessions = Sessions()
    report_run(tmp_path / "report", sessions, **ONE).run()
    assert sessions.asked == [("rms_norm", ("baseline", "playbook"))]


def test_a_campaign_that_ended_at_a_smaller_budget_goes_on_under_a_larger_one(tmp_path: Path) -> None:
    report_run(tmp_path / "report", Sessions(), rounds=1, phases=("campaigns",), **ONE).run()
    place = tmp_path / "report/operators/rms_norm/playbook"
    (place / "campaign.json").unlink()
    evaluator = FakeEvaluator()
    later = report_run(tmp_path / "report", Sessions(), evaluator=evaluator, phases=("campaigns",), **ONE)
    later.run()
    campaign = later.report().operators[0].campaigns[0]
    assert campaign.rounds == 3 and campaign.evaluations == 4
    judged = [request.candidate.digest for request in evaluator.requests]
    assert judged[:2] == [step.kernel for step in campaign.steps][2:]


@pytest.mark.parametrize("name", ["playbook/campaign.json", "final.json", "peers.json"])
@pytest.mark.parametrize("strange", ["{}", "[]", '{"rows": 5, "campaign": 5}', "[" * 100_000])
def test_a_document_that_is_none_of_a_report_is_named(tmp_path: Path, name: str, strange: str) -> None:
    report_run(tmp_path / "report", Sessions(), rounds=1, **ONE).run()
    (tmp_path / "report/operators/rms_norm" / name).write_text(strange)
    with pytest.raises(UsageError, match=name):
        report_run(tmp_path / "report", Sessions(), rounds=1, **ONE).report()
