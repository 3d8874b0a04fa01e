"""``python -m harness evaluate`` at its boundary: exit codes, documents, sentences."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.cli import main
from harness.domain.codec import check_schema
from harness.evaluation.run import Place
from tests.harness.cli import kernels
from tests.harness.judge.evaluations import fewer_draws


def _evaluate(tmp_path: Path, source: str, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, dict]:
    path = tmp_path / "candidate.py"
    path.write_text(source, encoding="utf-8", newline="")
    code = main(["evaluate", "--operator", "rms_norm", "--backend", "numba", "--json", *options, str(path)])
    verdict = json.loads(capsys.readouterr().out)
    check_schema(verdict, "verdict")
    return code, verdict


@pytest.mark.parametrize(
    ("source", "outcomes", "stage"),
    [
        (kernels.SYNTAX, {"compile_error", "policy_violation"}, "static"),
        (kernels.NO_RUN, {"policy_violation"}, "static"),
        (kernels.ARITY, {"policy_violation"}, "static"),
        (kernels.CHEATING, {"policy_violation"}, "static"),
        (kernels.COOKIE, {"policy_violation"}, "static"),
        (kernels.CONTROL, {"policy_violation"}, "static"),
        (kernels.NESTED, {"policy_violation", "compile_error"}, "static"),
        ("", {"policy_violation", "compile_error"}, "static"),
    ],
    ids=["syntax", "no run", "arity", "import", "cookie", "control", "nesting", "empty"],
)
def test_unreadable_or_forbidden_text_is_refused_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], source: str, outcomes: set[str], stage: str
) -> None:
    code, verdict = _evaluate(tmp_path, source, capsys)
    assert code == 1
    assert verdict["outcome"] in outcomes
    assert verdict["stage"] in ("admit", stage)
    assert verdict["reasons"] and all(reason["text"] for reason in verdict["reasons"])
    assert verdict["timing"] is None and verdict["comparison"] == "none"


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("source", "outcome"),
    [
        (kernels.WRONG, "incorrect_numeric"),
        (kernels.CRASHING, "runtime_error"),
        (kernels.BEYOND, "out_of_bounds"),
    ],
    ids=["wrong", "crashing", "out of bounds"],
)
def test_a_failing_candidate_is_refused_with_its_outcome(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], source: str, outcome: str
) -> None:
    code, verdict = _evaluate(tmp_path, source, capsys)
    assert (code, verdict["outcome"]) == (1, outcome)
    assert verdict["blame"] == "candidate"


@pytest.mark.sandbox
def test_a_hanging_candidate_ends_within_its_limit_and_the_next_is_unaffected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, verdict = _evaluate(tmp_path, kernels.HANGING, capsys, "--deadline", "8")
    assert code == 1 and verdict["outcome"] in ("timeout", "policy_violation")
    code, verdict = _evaluate(tmp_path, kernels.WRONG, capsys)
    assert (code, verdict["outcome"]) == (1, "incorrect_numeric")


@pytest.mark.slow
@pytest.mark.sandbox
def test_a_slower_kernel_passes_and_is_not_called_faster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    incumbent = tmp_path / "incumbent.py"
    incumbent.write_text(kernels.HONEST)
    with fewer_draws(Place.NUMBA):
        code, verdict = _evaluate(tmp_path, kernels.SLOWER, capsys, "--incumbent", str(incumbent), "--require-faster")
    assert verdict["outcome"] == "passed", verdict["reasons"]
    assert code == 1 and verdict["comparison"] in ("slower", "cannot_tell")
    assert verdict["compared_with"] == "incumbent"
    assert set(verdict["timing"]["overall"]) == {"incumbent", "baseline"}


@pytest.mark.parametrize(
    ("argv", "word"),
    [
        (["evaluate", "--operator", "rms_norm", "--backend", "numba", "missing.py"], "missing.py"),
        (["evaluate", "--operator", "nope", "--backend", "numba", "FILE"], "nope"),
        (["evaluate", "--backend", "numba", "FILE"], "--operator"),
        (["evaluate", "--operator", "rms_norm", "--backend", "numba", "--hardware", "abacus", "FILE"], "abacus"),
        (["evaluate", "--operator", "rms_norm", "--backend", "numba", "--workload", "nope", "FILE"], "nope"),
    ],
)
def test_usage_errors_say_what_and_exit_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], argv: list[str], word: str
) -> None:
    kernel = tmp_path / "kernel.py"
    kernel.write_text(kernels.HONEST)
    assert main([str(kernel) if part == "FILE" else part for part in argv]) == 2
    assert word in capsys.readouterr().err


def test_bytes_that_are_not_text_exit_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = tmp_path / "kernel.py"
    kernel.write_bytes(b"\xff\xfe\x00")
    assert main(["evaluate", "--operator", "rms_norm", "--backend", "numba", str(kernel)]) == 2
    assert "UTF-8" in capsys.readouterr().err


def test_unknown_backend_exits_2(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["evaluate", "--operator", "rms_norm", "--backend", "cobol", "x.py"])
    assert ended.value.code == 2


def test_a_request_that_is_no_request_exits_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    request = tmp_path / "r.json"
    request.write_text('{"version": 1}')
    assert main(["evaluate", "--request", str(request), "--response", str(tmp_path / "v.json")]) == 2
    assert "required" in capsys.readouterr().err
    assert not (tmp_path / "v.json").exists()
