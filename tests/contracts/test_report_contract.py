"""A report as the harness writes it is one that the site takes: nothing in it contradicts itself."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from apps.bridge.api.errors import BridgeError
from apps.bridge.api.reports import is_report, report_check
from harness import EVALUATOR_VERSION
from harness.domain.request import EvaluationRequest
from harness.domain.samples import Samples
from harness.domain.verdict import Verdict
from harness.hardware.detect import environment
from harness.report.run import write
from tests.harness.campaign.fake_evaluator import FakeEvaluator
from tests.harness.report.stand_ins import Sessions, report_run


class Here(FakeEvaluator):
    """Judges in this environment class, as an evaluator does."""

    def __call__(self, request: EvaluationRequest) -> tuple[Verdict, Samples | None]:
        verdict, samples = super().__call__(request)
        evaluator = dataclasses.replace(verdict.evaluator, version=EVALUATOR_VERSION)
        return dataclasses.replace(verdict, environment=environment(request.backend), evaluator=evaluator), samples


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    home = tmp_path_factory.mktemp("contract")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERNELOPT_VAR", str(home / "var"))
        run = report_run(home / "report", Sessions(), evaluator=Here(), operators=("rms_norm",))
        run.run()
        write(run, lambda report: "")
    return (home / "report/report.json").read_bytes()


def test_a_whole_report_is_taken(written: bytes) -> None:
    assert is_report(written)
    facts = report_check(written)
    assert facts.document["operators"][0]["campaigns"][0]["steps"][0]["best"] == 1.0


def test_a_report_of_libraries_alone_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELOPT_VAR", str(tmp_path / "var"))
    run = report_run(tmp_path / "report", Sessions(), phases=("peers",))
    run.run()
    write(run, lambda report: "")
    assert report_check((tmp_path / "report/report.json").read_bytes()).document["complete"]


def test_a_curve_that_claims_more_than_was_measured_is_not(written: bytes) -> None:
    document = json.loads(written)
    document["operators"][0]["campaigns"][0]["steps"][0]["best"] = 1.2
    with pytest.raises(BridgeError, match="claims"):
        report_check(json.dumps(document).encode())
