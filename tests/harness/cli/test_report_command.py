"""``harness report``: what it refuses before anything is measured, and stored results without measuring."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.cli import main
from harness.domain.codec import schema
from harness.domain.vocabulary import Backend
from harness.report.settings import Folder, Settings, remember


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    remember(Folder(tmp_path / "begun"), Settings(Backend.NUMBA, "cpu-elsewhere-9-9t", "llm", ("softmax",)), "now")
    return tmp_path / "begun"


@pytest.mark.parametrize(("arguments", "words"), [
    ([], "--out DIR for a new report"),
    (["--out", "{tmp}/x", "--only", "softmax,sofmax"], "no operator 'sofmax'"),
    (["--out", "{tmp}/x", "--agents", "magic"], "no agent 'magic'"),
    (["--out", "{tmp}/x", "--phases", "peers,everything"], "no phase 'everything'"),
    (["--out", "{begun}"], "holds a report already"),
    (["--resume", "{begun}"], "cpu-elsewhere-9-9t"),
    (["--resume", "{tmp}/nothing"], "no report to go on with"),
    (["--out", "{tmp}/x", "--backend", "triton"], "no GPU that kernels can be launched on"),
    (["--show", "{tmp}/nothing.json"], "cannot be read"),
])
def test_usage_is_one_sentence_and_nothing_is_written(arguments: list[str], words: str, tmp_path: Path, begun: Path,
                                                      capsys: pytest.CaptureFixture[str]) -> None:
    filled = [text.format(tmp=tmp_path, begun=begun) for text in arguments]
    assert main(["report", *filled]) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_a_stored_report_is_shown_and_its_page_made_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored = tmp_path / "report.json"
    stored.write_text(json.dumps(schema("report")["examples"][0]))
    assert main(["report", "--show", str(stored)]) == 0
    said = capsys.readouterr().out
    assert "torch.compile" in said and "not reached" in said and "absent" in said
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")


def test_a_report_that_is_none_is_refused_with_the_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = schema("report")["examples"][0] | {"hardware": 7}
    stored = tmp_path / "report.json"
    stored.write_text(json.dumps(document))
    assert main(["report", "--show", str(stored)]) == 2
    assert "'hardware'" in capsys.readouterr().err
