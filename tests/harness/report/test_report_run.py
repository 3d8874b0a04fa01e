"""A report is run piece by piece: what is there is not run again, what fails or does not fit is named."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from harness.domain.codec import check_schema, from_document
from harness.domain.digest import digest_source
from harness.domain.errors import UsageError
from harness.domain.goal import goal_from_document
from harness.domain.report import Report
from harness.domain.verdict import Verdict
from harness.evaluation import library
from harness.hardware.detect import environment
from harness.peers import store
from harness.report.page import page
from harness.report.run import pieces, write
from harness.report.settings import Folder, remembered
from tests.harness.campaign.fake_evaluator import FakeEvaluator
from tests.harness.report.stand_ins import BEGAN, Sessions, report_run, settings


@pytest.fixture(autouse=True)
def var(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELOPT_VAR", str(tmp_path / "var"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, Path]:
    """A report of two operators, and its folder with the figures that it kept."""
    home = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERNELOPT_VAR", str(home / "var"))
        run = report_run(home / "report", Sessions())
        run.run()
        return write(run, lambda report: page(report, Path("absent"))), home


def test_a_whole_report_follows_its_schema_and_names_every_part(whole: tuple[Report, Path]) -> None:
    report, home = whole
    assert report.complete and not report.missing
    assert report.roofs == {"copy_gbps": 4200.0}
    document = json.loads((home / "report/report.json").read_text())
    check_schema(document, "report")
    assert from_document(document, Report) == report
    check_schema(json.loads((home / "report/peers.json").read_text()), "peers")
    for operator in report.operators:
        assert [campaign.agent for campaign in operator.campaigns] == ["playbook", "autotune"]
        assert operator.kernels[0].name == "baseline" and operator.kernels[0].agent is None
        for kernel in operator.kernels:
            assert digest_source(operator.sources[kernel.digest]) == kernel.digest
            check_schema(kernel.verdict, "verdict")
            assert from_document(kernel.verdict, Verdict).kernel == kernel.digest
            check_schema(kernel.samples, "samples")
        for campaign in operator.campaigns:
            assert goal_from_document(campaign.goal).digest == campaign.goal_digest
            assert all(step.kernel in operator.sources for step in campaign.steps)


def test_curves_hold_every_evaluation_and_the_best_never_falls(whole: tuple[Report, Path]) -> None:
    for operator in whole[0].operators:
        for campaign in operator.campaigns:
            best = [step.best for step in campaign.steps]
            assert len(best) == campaign.evaluations and best[0] == 1.0
            assert best == sorted(best)
            assert [step.evaluation for step in campaign.steps] == list(range(1, len(best) + 1))


def test_the_final_session_has_every_agents_best_and_the_baseline(tmp_path: Path) -> None:
    sessions = Sessions()
    run = report_run(tmp_path / "report", sessions, operators=("rms_norm",))
    run.run()
    report = run.report()
    best = {kernel.name for kernel in report.operators[0].kernels}
    assert sessions.asked == [("rms_norm", ("baseline",)), ("rms_norm", tuple(
        name for name in ("baseline", "playbook", "autotune") if name in best))]


def test_finished_pieces_are_not_run_again(tmp_path: Path) -> None:
    first, second = Sessions(), Sessions()
    report_run(tmp_path / "report", first, operators=("rms_norm",), agents=("autotune",)).run()
    evaluator = FakeEvaluator()
    again = report_run(tmp_path / "report", second, evaluator=evaluator, agents=("autotune",))
    again.run()
    assert {operator for operator, _ in second.asked} == {"softmax"}
    assert {request.operator.name for request in evaluator.requests} == {"softmax"}
    assert again.report().complete


def test_a_spent_budget_leaves_whole_pieces_and_says_so(tmp_path: Path) -> None:
    now = [0.0]

    def clock() -> float:
        now[0] += 8.0
        return now[0]

    run = report_run(tmp_path / "report", Sessions(), budget_s=60.0, clock=clock, agents=("autotune",))
    run.run()
    report = write(run, lambda one: page(one, Path("absent")))
    assert not report.complete
    assert any("--resume" in sentence for sentence in report.missing)
    assert any("was not run" in sentence for sentence in report.missing)
    check_schema(json.loads((tmp_path / "report/report.json").read_text()), "report")
    later = report_run(tmp_path / "report", Sessions(), agents=("autotune",))
    later.run()
    assert later.report().complete


def test_a_piece_that_fails_is_named_and_the_others_are_run(tmp_path: Path) -> None:
    run = report_run(tmp_path / "report", Sessions(fail=("rms_norm",)), agents=("autotune",))
    run.run()
    report = run.report()
    assert any("The device was lost." in sentence for sentence in report.missing)
    assert not report.operators[0].rows and report.operators[1].rows
    assert len(report.operators[0].campaigns) == 1


def test_any_fault_of_one_piece_is_its_gap_and_is_tried_again(tmp_path: Path) -> None:
    sessions = Sessions(fail=("rms_norm",), fault=RuntimeError("CUDA_ERROR_LAUNCH_FAILED"))
    run = report_run(tmp_path / "report", sessions, phases=("peers",))
    run.run()
    assert any("CUDA_ERROR_LAUNCH_FAILED" in sentence and "rms_norm" in sentence for sentence in run.report().missing)
    later = report_run(tmp_path / "report", Sessions(), phases=("peers",))
    later.run()
    assert later.report().complete and later.report().operators[0].rows


def test_a_session_in_which_our_kernels_failed_is_named_and_tried_again(tmp_path: Path) -> None:
    run = report_run(tmp_path / "report", Sessions(failed="8192x8192: the device failed twice"),
                     operators=("softmax",), phases=("peers",))
    run.run()
    report = run.report()
    assert report.operators[0].rows and not report.complete
    assert "our kernels were not timed on 8192x8192" in report.missing[0]
    sessions = Sessions()
    report_run(tmp_path / "report", sessions, operators=("softmax",), phases=("peers",)).run()
    assert len(sessions.asked) == 1


def test_sessions_feed_the_rules_that_later_verdicts_are_held_against(whole: tuple[Report, Path],
                                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELOPT_VAR", str(whole[1] / "var"))
    settings_here = settings()
    class_ = environment(settings_here.backend).class_
    best = library.best_of(class_, "softmax", "llm")
    assert {one.name for one in best.values()} == {"torch eager"}
    assert store.kept(library.path_of(class_)) is not None


def test_a_killed_run_has_noted_what_it_took_until_then(tmp_path: Path) -> None:
    class Killing(Sessions):
        def __call__(self, *arguments: Any, **more: Any) -> Any:
            if self.asked:
                raise SystemExit(143)
            return super().__call__(*arguments, **more)

    now = [0.0]

    def clock() -> float:
        now[0] += 5.0
        return now[0]

    run = report_run(tmp_path / "report", Killing(), phases=("peers",), clock=clock)
    with pytest.raises(SystemExit):
        run.run()
    (noted,) = (Folder(tmp_path / "report").read("run.json") or {})["runs"]
    assert noted["seconds"] > 0
    report = run.report()
    assert report.operators[0].rows and not report.operators[1].rows and not report.complete
    report_run(tmp_path / "report", Sessions(), phases=("peers",), clock=clock).run()
    assert len((Folder(tmp_path / "report").read("run.json") or {})["runs"]) == 2


def test_two_runs_that_share_a_folder_both_remain_in_its_record(tmp_path: Path) -> None:
    first, second = report_run(tmp_path / "report", Sessions()), report_run(tmp_path / "report", Sessions())
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(run._note_run) for _ in range(40) for run in (first, second)]:
            done.result()
    runs = Folder(tmp_path / "report").read("run.json")["runs"]
    assert len(runs) == 2


def test_pieces_come_operator_by_operator_in_the_order_of_phases() -> None:
    names = [piece.name for piece in pieces(settings(operators=("softmax",)))]
    assert names == ["operators/softmax/peers.json", "operators/softmax/playbook/campaign.json",
                     "operators/softmax/autotune/campaign.json", "operators/softmax/final.json"]
    assert len(list(pieces(settings(phases=("peers",))))) == 2


def test_a_run_of_a_part_leaves_the_rest_of_the_report_in_place(tmp_path: Path) -> None:
    report_run(tmp_path / "report", Sessions(), phases=("peers",)).run()
    sessions = Sessions()
    run = report_run(tmp_path / "report", sessions, phases=("peers", "final"))
    run.todo = run.settings.narrowed(("softmax",), None, ("final",))
    run.run()
    assert [operator for operator, _ in sessions.asked] == ["softmax"]
    assert [bool(operator.rows) for operator in run.report().operators] == [True, True]


def test_what_a_later_run_adds_belongs_to_the_report() -> None:
    first, more = settings(operators=("softmax",), phases=("peers",)), settings(operators=("rms_norm",),
                                                                             phases=("final",), agents=("playbook",))
    whole = first.widened(more)
    assert (whole.operators, whole.phases) == (("softmax", "rms_norm"), ("peers", "final"))
    assert whole.agents == first.agents and first.widened(first) == first


def test_settings_survive_in_the_folder(tmp_path: Path) -> None:
    report_run(tmp_path / "report", Sessions(), operators=("softmax",), rounds=7)
    found, began = remembered(Folder(tmp_path / "report"))
    assert found == settings(operators=("softmax",), rounds=7) and began == BEGAN
    assert found.narrowed(None, ("playbook",), None).agents == ("playbook",)


def test_a_report_of_another_environment_class_is_not_gone_on_with(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "report")
    report_run(folder.path, Sessions(), operators=("softmax",))
    document = folder.read("run.json") or {}
    folder.write("run.json", {**document, "environment": document["environment"].replace("eval-", "eval-0.")})
    with pytest.raises(UsageError, match="never mixed"):
        remembered(folder)


def test_a_folder_without_a_report_cannot_be_gone_on_with(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no report to go on with"):
        remembered(Folder(tmp_path))


@pytest.mark.parametrize("text", ["{", "[]", "\x00"])
def test_a_broken_piece_is_named_with_what_to_do(tmp_path: Path, text: str) -> None:
    (tmp_path / "peers.json").write_text(text)
    with pytest.raises(UsageError, match="measured again"):
        Folder(tmp_path).read("peers.json")
