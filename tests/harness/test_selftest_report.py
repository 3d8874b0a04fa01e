"""The self-test's table, its judgement and its command, without running kernels."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from harness.cli import main, selftest
from harness.domain.errors import UsageError
from harness.domain.vocabulary import Backend, Outcome, Stage
from harness.evaluation.run import Place
from harness.evaluation.selftest.corpus import CorpusKernel, operator_kernels, read_corpus
from harness.evaluation.selftest.report import report
from harness.evaluation.selftest.results import CorpusResult
from harness.evaluation.selftest.runner import request_for
from harness.operators import registry


def kernel(kind: str = "cheat", outcomes: tuple[str, ...] = ("policy_violation",)) -> CorpusKernel:
    return CorpusKernel(name=f"{kind}/x.py", kind=kind, operator="rms_norm", backend=Backend.NUMBA,  # type: ignore[arg-type]
                        outcomes=tuple(Outcome(o) for o in outcomes), source="", note="")


def result(kind: str, outcome: str, right: bool | None) -> CorpusResult:
    return CorpusResult(kernel(kind), Outcome(outcome), Stage.SMOKE, "code", "text", right, 0.5)


def answers(*results: CorpusResult) -> object:
    def run(kernels: Iterable[CorpusKernel], jobs: int, hardware: str | None) -> Iterator[CorpusResult]:
        yield from results

    return run


@pytest.mark.parametrize(("results", "code", "passed"), [
    ([result("cheat", "policy_violation", True), result("honest", "passed", True)], 0, True),
    ([result("cheat", "passed", False)], 1, False),
    ([result("wrong", "runtime_error", False), result("honest", "passed", True)], 0, True),
    ([result("honest", "out_of_bounds", False), result("cheat", "infra_error", None)], 1, False),
    ([result("cheat", "infra_error", None), result("honest", "passed", True)], 2, None),
    ([], 2, None)])
def test_exit_codes_and_document(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
                                 results: list[CorpusResult], code: int, passed: bool | None) -> None:
    monkeypatch.setattr(selftest, "_results", answers(*results))
    assert main(["selftest", "--quick", "--json"]) == code
    document = json.loads(capsys.readouterr().out)
    assert document["passed"] is passed
    assert document["counts"]["run"] == len(results)
    assert document["isolation"] is None


def test_the_document_names_the_weakest_walls_that_were_used() -> None:
    ran = [dataclasses.replace(result("cheat", "timeout", True), isolation=level, environment="cpu")
           for level in (3, 2)]
    unstarted = dataclasses.replace(ran[0], isolation=0, stage=Stage.STATIC)
    document = report([*ran, unstarted], quick=True, seconds=1.0)
    assert (document["isolation"], document["environments"]) == (2, ["cpu"])


def test_text_says_what_slipped_and_what_waits(monkeypatch: pytest.MonkeyPatch,
                                               capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(selftest, "_results", answers(result("cheat", "passed", False)))
    assert main(["selftest"]) == 1
    out = capsys.readouterr().out
    assert "FAIL" in out
    assert "1 slipped through" in out
    assert "Promotions must wait" in out


def test_the_quick_subset_and_the_operators_own_kernels() -> None:
    quick = selftest.chosen_kernels(quick=True)
    everything = selftest.chosen_kernels(quick=False)
    assert 5 <= len(quick) < 30
    assert {"cheat", "wrong", "honest"} == {k.kind for k in quick}
    shipped = sum(len(s.wrong_kernels) for s in registry.all_operators())
    here = [k for k in read_corpus() if k.judged_at(Place.NUMBA) or k.judged_at(Place.INTERPRETER)]
    assert len(everything) == len(here) + shipped
    assert all(k.backend is Backend.NUMBA for k in selftest.chosen_kernels(quick=False, backend="numba"))


def test_operator_kernels_carry_their_source_and_outcomes() -> None:
    for found in operator_kernels(registry.get("rms_norm")):
        assert "def run(" in found.source
        assert Outcome.PASSED not in found.outcomes


def test_requests_are_complete_and_carry_the_grant() -> None:
    laundered = next(k for k in read_corpus() if k.name == "cheats/laundered_tier.py")
    request = request_for(laundered)
    assert (request.grant, request.purpose, request.candidate.source) == ("light", "selftest", laundered.source)
    assert request.against[0].role == "baseline"


def test_a_missing_corpus_says_where_it_belongs(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"index\.toml is missing.*tests/adversarial"):
        read_corpus(tmp_path)


@pytest.mark.parametrize("table", ["not toml [", "x = 1\n", '[[kernel]]\nfile = "a.py"\n',
                                   '[[kernel]]\nfile = "a.py"\nkind = "cheat"\noperator = "rms_norm"\n'
                                   'backend = "numba"\noutcomes = ["passed"]\nnote = ""\n'])
def test_a_broken_table_names_the_table(tmp_path: Path, table: str) -> None:
    (tmp_path / "index.toml").write_text(table, "utf-8")
    with pytest.raises(UsageError, match=r"index\.toml"):
        read_corpus(tmp_path)
