"""``optimize --out``: a campaign whose process was ended goes on when the same command is given again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.__main__ import main
from tests.harness.campaign.fake_evaluator import FakeEvaluator

ASKED = ("optimize", "--operator", "softmax", "--backend", "numba", "--rounds", "3", "--json")


def _optimize(monkeypatch: pytest.MonkeyPatch, evaluator: Any, out: Path) -> int:
    monkeypatch.setattr("harness.cli.optimize.real_evaluator", lambda progress: evaluator)
    return main([*ASKED, "--out", str(out)])


class Killed(FakeEvaluator):
    """Its process is ended in the third evaluation."""

    def __call__(self, request: Any) -> Any:
        if len(self.requests) == 2:
            raise KeyboardInterrupt
        return super().__call__(request)


def test_it_goes_on_and_judges_nothing_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                             capsys: pytest.CaptureFixture[str]) -> None:
    whole, rest = FakeEvaluator(), FakeEvaluator()
    assert _optimize(monkeypatch, whole, tmp_path / "whole") == 0
    expected = json.loads(capsys.readouterr().out)
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        raise SystemExit(_optimize(monkeypatch, Killed(), tmp_path / "cut"))
    capsys.readouterr()
    assert _optimize(monkeypatch, rest, tmp_path / "cut") == 0
    said = capsys.readouterr()
    assert "goes on after 2 evaluations" in said.err
    found = json.loads(said.out)
    assert [(one["round"], one["outcome"]) for one in found["log"]] == [
        (one["round"], one["outcome"]) for one in expected["log"]]
    assert len(rest.requests) == len(whole.requests) - 2


DAMAGE = {"a list": b"[]", "a number": b"5", "nothing": b"null", "a text": b'"Evaluated"', "no text": b"\xff\xfe",
          "half a pair": b'{"kind": "AgentFailed", "data": {"round": 1, "reason": "\\ud800", "blame": "model"}}',
          "deep lists": b"[" * 100_000, "NaN": b'{"kind": "BudgetClock", "data": {"seconds": NaN}}'}


@pytest.mark.parametrize("name", ["results.jsonl", "goal.json", "second line"])
@pytest.mark.parametrize("damage", DAMAGE.values(), ids=list(DAMAGE))
def test_strange_files_are_a_sentence_or_left_out_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, damage: bytes
) -> None:
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        raise SystemExit(_optimize(monkeypatch, Killed(), tmp_path))
    file = tmp_path / ("results.jsonl" if name == "second line" else name)
    first = file.read_bytes().splitlines(keepends=True)[0] if name == "second line" else b""
    file.write_bytes(first + damage + b"\n")
    capsys.readouterr()
    rest = FakeEvaluator()
    found, said = _optimize(monkeypatch, rest, tmp_path), capsys.readouterr().err
    if name == "second line" and damage != DAMAGE["no text"]:
        assert found == 0 and "goes on after 1 evaluation." in said and rest.requests
    else:
        assert found == 2 and "Nothing was changed" in said and not rest.requests


def test_one_that_has_ended_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                          capsys: pytest.CaptureFixture[str]) -> None:
    _optimize(monkeypatch, FakeEvaluator(), tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    evaluator = FakeEvaluator()
    assert _optimize(monkeypatch, evaluator, tmp_path) == 2
    assert "name a new folder" in capsys.readouterr().err and not evaluator.requests
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
