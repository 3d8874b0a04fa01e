"""A bulk search in a report: its figures and its kernel, beside the agents' and in the final session."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.agents.playbook import edit
from harness.domain.codec import check_schema, to_document
from harness.domain.digest import digest_source
from harness.domain.vocabulary import Backend, Outcome
from harness.operators import registry
from harness.report.page import page
from harness.report.searches import NAME, documented
from harness.report.text import print_report
from tests.harness.campaign.fake_evaluator import FakeEvaluator
from tests.harness.report.stand_ins import US, Sessions, report_run, settings

SPEC = registry.get("softmax")
BASELINE = SPEC.baseline(Backend.TRITON)
BETTER = edit.set_params(BASELINE, {"num_warps": 16})
TRITON: dict[str, Any] = {"backend": Backend.TRITON, "hardware": "nvidia-h200", "operators": ("softmax",), "space": 40,
                          "phases": ("peers", "campaigns", "search", "final"), "agents": ("playbook",)}


def result(source: str | None) -> Any:
    """As ``harness.search.search.Result``."""
    found = SimpleNamespace(config=SimpleNamespace(params={"num_warps": 16}), ratio=1.25, samples=25)
    return SimpleNamespace(source=source, points=40, configurations=120, problems={"arithmetic": 7}, rungs=(113, 28, 7),
                           timed=113, seconds=30.0, device_s=12.0, per_minute=240.0, best={"long": found})


@pytest.fixture(autouse=True)
def var(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELOPT_VAR", str(tmp_path / "var"))
    monkeypatch.setitem(US, NAME, 55.0)


def searching(settings_: Any, operator: str, evaluate: Any, folder: Any, told: Any) -> None:
    folder.write(f"operators/{operator}/search.json", documented(settings_, operator, result(BETTER), 480, evaluate))


def test_what_a_search_found_is_judged_and_measured_with_the_others(tmp_path: Path,
                                                                    capsys: pytest.CaptureFixture[str]) -> None:
    sessions = Sessions()
    run = report_run(tmp_path / "report", sessions, **TRITON)
    run.search = searching
    run.run()
    report = run.report()
    check_schema(to_document(report), "report")
    operator = report.operators[0]
    assert operator.search is not None and operator.search.kernel == digest_source(BETTER)
    assert operator.sources[digest_source(BETTER)] == BETTER
    assert NAME in {kernel.name for kernel in operator.kernels} and NAME in sessions.asked[-1][1]
    means = {mean.name for mean in report.means}
    assert "softmax: search over playbook" in means
    assert "480" in page(report, Path("absent")) and "240 configurations a minute" in page(report, Path("absent"))
    print_report(report, tmp_path)
    assert "search: 120 configurations (113 timed)" in capsys.readouterr().out


@pytest.mark.parametrize("found", [None, BASELINE])
def test_a_search_that_found_nothing_has_no_kernel(found: str | None) -> None:
    evaluator = FakeEvaluator()
    document = documented(settings(**TRITON), "softmax", result(found), 480, evaluator)
    assert document["search"]["kernel"] is None and not document["kernels"] and not evaluator.requests


def test_what_the_evaluator_refuses_is_no_kernel_of_the_report() -> None:
    evaluator = FakeEvaluator(refuse={"'num_warps': 16": Outcome.INCORRECT_NUMERIC,
                                      '"num_warps": 16': Outcome.INCORRECT_NUMERIC})
    document = documented(settings(**TRITON), "softmax", result(BETTER), 480, evaluator)
    assert evaluator.requests and document["search"]["kernel"] is None and not document["sources"]


def test_a_search_that_was_not_run_is_named(tmp_path: Path) -> None:
    run = report_run(tmp_path / "report", Sessions(), **TRITON)
    assert any("bulk search" in sentence for sentence in run.report().missing)
