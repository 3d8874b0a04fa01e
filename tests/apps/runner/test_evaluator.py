"""The warm evaluator child: what it may see, what it may answer, and that nothing of it outlives its end."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from apps.bridge.runner.evaluator import Abandoned, Evaluator, ProgressLine, read_progress
from apps.bridge.runner.responses import ResponseInvalid

PROJECT = Path(__file__).parents[3]
CHILD = [sys.executable, str(Path(__file__).with_name("scripted_child.py"))]


@pytest.fixture
def evaluator() -> Iterator[Evaluator]:
    """An evaluator with the scripted child."""
    made = Evaluator(project=PROJECT, command=CHILD, start_allowance_s=20.0)
    yield made
    made.close()


def _request(word: str, deadline_s: float = 30.0) -> dict[str, Any]:
    return {"candidate": {"digest": "sha256:" + "a" * 64, "source": f"# {word}\n"}, "backend": "numba",
            "operator": {"name": "rms_norm", "version": "1"}, "hardware": "cpu-x-1t", "deadline_s": deadline_s}


def _judge(evaluator: Evaluator, word: str, lines: list[ProgressLine] | None = None, **more: Any) -> dict[str, Any]:
    seen = [] if lines is None else lines
    return evaluator.evaluate(_request(word, **more), on_progress=seen.append, on_tick=lambda: None).verdict


def test_a_verdict_comes_back_with_progress(evaluator: Evaluator) -> None:
    lines: list[ProgressLine] = []
    assert _judge(evaluator, "refuse", lines)["outcome"] == "policy_violation"
    assert [line.stage for line in lines] == ["admit", "static"]


def test_the_child_stays_warm_between_candidates_and_is_replaced_after_a_crash(evaluator: Evaluator) -> None:
    first, second = _judge(evaluator, "refuse"), _judge(evaluator, "refuse")
    assert first["reasons"] == second["reasons"]  # the same process answered
    with pytest.raises(ResponseInvalid, match=r"killed by signal 9.*about to die"):
        _judge(evaluator, "crash")
    assert _judge(evaluator, "refuse")["reasons"] != first["reasons"]


def test_a_child_that_grows_is_replaced_and_a_large_one_is_not(evaluator: Evaluator,
                                                               monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apps.bridge.runner.evaluator.GROWN_BYTES", 5 << 20)
    first = _judge(evaluator, "grow")  # what the first evaluation loads is what it needs
    assert _judge(evaluator, "grow")["reasons"] == first["reasons"]
    assert _judge(evaluator, "refuse")["reasons"] != first["reasons"]


@pytest.mark.parametrize(("word", "sentence"), [
    ("exit", "ended with code 3"), ("silent", "left no verdict"), ("garbage", "not JSON"), ("other", "was asked"),
])
def test_an_answer_that_is_none_is_explained_and_the_next_candidate_unaffected(
    evaluator: Evaluator, word: str, sentence: str
) -> None:
    with pytest.raises(ResponseInvalid, match=sentence):
        _judge(evaluator, word)
    assert _judge(evaluator, "refuse")["outcome"] == "policy_violation"


def test_a_missed_deadline_ends_the_child(evaluator: Evaluator) -> None:
    evaluator._allowance = 1.0
    with pytest.raises(ResponseInvalid, match="did not answer within"):
        _judge(evaluator, "hang", deadline_s=0.5)
    assert evaluator.pid is None


def test_giving_up_ends_the_whole_tree_even_what_left_its_session(evaluator: Evaluator) -> None:
    grandchild: list[int] = []

    def give_up() -> None:
        if grandchild:
            raise Abandoned("enough")

    def note(line: ProgressLine) -> None:
        if line.text.isdigit():
            grandchild.append(int(line.text))

    with pytest.raises(Abandoned):
        evaluator.evaluate(_request("breed"), on_progress=note, on_tick=give_up)
    assert not psutil.pid_exists(grandchild[0]) or psutil.Process(grandchild[0]).status() == psutil.STATUS_ZOMBIE
    assert evaluator.pid is None


def test_the_child_sees_nothing_of_the_site(evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELOPT_SECRET_KEY", "secret")
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("KERNELOPT_DATABASE_URL", "postgres://secret")
    environment = json.loads(_judge(evaluator, "env")["reasons"][0]["text"])
    assert "secret" not in json.dumps(environment)
    assert not {name for name in environment if name.startswith(("DJANGO", "OPENAI"))}
    assert environment["HOME"] == environment["TMPDIR"]


def test_its_folder_is_private_and_gone_afterwards(evaluator: Evaluator) -> None:
    home = Path(json.loads(_judge(evaluator, "env")["reasons"][0]["text"])["HOME"])
    assert home.stat().st_mode & 0o077 == 0
    assert not list(home.glob("evaluation-*"))
    evaluator.close()
    assert not home.exists()


@pytest.mark.parametrize("document", [{}, {"done": 1}, {"stage": "x", "done": "many"}, {"stage": "x", "total": None}])
def test_lines_that_are_no_progress_are_passed_over(document: dict[str, Any]) -> None:
    assert read_progress(document) is None
