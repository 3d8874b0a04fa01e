"""What kept library figures mean for a verdict: suspicious wins, slow baselines, rules that are off and say so."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.domain.codec import from_document, schema
from harness.domain.digest import digest_source
from harness.domain.peers import Peers, Row, Side, best_peers
from harness.domain.verdict import ShapeTiming, Timing
from harness.domain.vocabulary import Backend, Evidence
from harness.evaluation import library
from harness.hardware.detect import environment
from harness.operators import registry
from harness.peers import store

SPEC = registry.get("softmax")
CLASS = environment(Backend.NUMBA).class_


def peer(us: float, *, right: bool | None = True, name: str = "torch eager", shape: str = "64x8192",
         operator: str = "softmax") -> Row:
    return Row(operator, shape, "float32", Side.PEER, name, median_us=us, p10=us, p90=us, n=10, right=right)


def document(*rows: Row) -> Peers:
    example = from_document(schema("peers")["examples"][0], Peers)
    here = dataclasses.replace(example.environment, class_=CLASS)
    return dataclasses.replace(example, backend="numba", environment=here, rows=rows, clocks=())


def timing(us: float) -> Timing:
    return Timing(Evidence.BOUNDED, 0.01, 5, (ShapeTiming("64x8192", 1.0, us, us, us, 0.01),))


def run(candidate: str) -> Any:
    return SimpleNamespace(
        spec=SPEC, clocks={}, suspicious=[], notes=[], device=None,
        request=SimpleNamespace(backend=Backend.NUMBA, workload="llm",
                                candidate=SimpleNamespace(digest=digest_source(candidate))))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KERNELOPT_VAR", str(tmp_path))
    return tmp_path


def test_without_figures_the_rules_are_off_and_say_so() -> None:
    one = run(SPEC.baseline(Backend.NUMBA))
    library.hold_against(one, timing(1.0))
    assert one.clocks["library"] == library.OFF
    assert not one.suspicious and not one.notes


def test_a_win_of_more_than_twice_the_best_library_is_suspicious() -> None:
    store.keep(document(peer(100.0), peer(90.0, name="torch.compile")))
    fast, fair = run("a"), run("a")
    library.hold_against(fast, timing(44.0))
    library.hold_against(fair, timing(46.0))
    assert "torch.compile" in fast.suspicious[0] and "90.0 us" in fast.suspicious[0]
    assert not fair.suspicious
    assert fair.clocks["library"] == {"64x8192": {"name": "torch.compile", "us": 90.0}}


def test_a_wrong_library_is_no_measure() -> None:
    rows = (peer(100.0), peer(10.0, right=False, name="Liger"), peer(90.0, right=None, name="unchecked"))
    assert best_peers(rows)["softmax", "64x8192"].name == "unchecked"


def test_a_baseline_beyond_three_times_the_best_library_is_noted_and_no_other_kernel() -> None:
    store.keep(document(peer(100.0)))
    baseline, other, fine = run(SPEC.baseline(Backend.NUMBA)), run("other"), run(SPEC.baseline(Backend.NUMBA))
    library.hold_against(baseline, timing(301.0))
    library.hold_against(other, timing(301.0))
    library.hold_against(fine, timing(299.0))
    assert [note.code for note in baseline.notes] == ["baseline_slow"]
    assert not other.notes and not fine.notes
    assert (Path(__file__).parents[2] / "docs/troubleshooting/baseline_slow.md").is_file()


def test_kept_figures_of_other_operators_stay_and_newer_ones_replace(folder: Path) -> None:
    store.keep(document(peer(100.0), peer(5.0, operator="rms_norm")))
    store.keep(document(peer(80.0)))
    whole = store.kept(library.path_of(CLASS))
    assert whole is not None
    assert {(row.operator, row.median_us) for row in whole.rows} == {("rms_norm", 5.0), ("softmax", 80.0)}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 1}'])
def test_a_broken_file_means_that_nothing_is_known(text: str) -> None:
    path = library.path_of(CLASS)
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert library.best_of(CLASS, "softmax", "llm") == {}


def test_figures_of_another_workload_are_not_used() -> None:
    store.keep(document(peer(100.0)))
    assert library.best_of(CLASS, "softmax", "other") == {}
