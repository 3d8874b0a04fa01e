"""The corpus at the level of the static stages: every kernel, no process started."""

from __future__ import annotations

import ast

import pytest

from harness.domain.errors import SourceError
from harness.domain.vocabulary import Backend, Outcome, Stage, Tier
from harness.evaluation.run import Place
from harness.evaluation.selftest.corpus import FOLDER, CorpusKernel, read_corpus, whole_corpus
from harness.evaluation.source.intake import parse, read_source
from harness.evaluation.source.tier import classify
from harness.evaluation.static.check import findings
from harness.evaluation.static.findings import Severity
from harness.operators import registry

CORPUS = read_corpus()
NAMES = [kernel.name for kernel in CORPUS]


def of_kind(kind: str) -> list[CorpusKernel]:
    return [kernel for kernel in CORPUS if kernel.kind == kind]


@pytest.mark.parametrize("kernel", CORPUS, ids=NAMES)
def test_static_blocks_exactly_what_the_table_says(kernel: CorpusKernel) -> None:
    found = findings(kernel.source, registry.get(kernel.operator), kernel.backend, kernel.prohibited)
    blocking = [finding.reason for finding in found if finding.severity is Severity.BLOCK]
    unreadable = kernel.stage is Stage.ADMIT and not _readable(kernel)
    assert bool(blocking) == (kernel.stage is Stage.STATIC or unreadable), [reason.text for reason in blocking]
    if kernel.stage is Stage.STATIC or unreadable:
        assert kernel.outcomes in ((Outcome.POLICY_VIOLATION,), (Outcome.COMPILE_ERROR,))


@pytest.mark.parametrize("kernel", [kernel for kernel in CORPUS if kernel.stage is Stage.ADMIT],
                         ids=lambda kernel: kernel.name)
def test_admit_refuses_by_tier_or_by_reading(kernel: CorpusKernel) -> None:
    if not _readable(kernel):
        assert kernel.outcomes in ((Outcome.POLICY_VIOLATION,), (Outcome.COMPILE_ERROR,))
        return
    spec = registry.get(kernel.operator)
    tier = classify(spec.baseline(kernel.backend), kernel.source, spec, kernel.backend).tier
    if kernel.outcomes == (Outcome.NO_CHANGE,):
        assert tier is Tier.NONE
    else:
        assert kernel.outcomes == (Outcome.GRANT_EXCEEDED,)
        assert tier > kernel.grant


def _readable(kernel: CorpusKernel) -> bool:
    try:
        parse(read_source(kernel.source.encode("utf-8")))
    except SourceError:
        return False
    return True


def test_the_corpus_is_large_complete_and_covers_both_backends() -> None:
    shipped = [kernel for kernel in whole_corpus() if kernel not in CORPUS]
    assert len(of_kind("cheat")) >= 70
    assert len(of_kind("wrong")) + len(shipped) >= 120
    assert len(of_kind("honest")) >= 60
    operators = {spec.name for spec in registry.all_operators()}
    for kind in ("wrong", "honest"):
        assert {(kernel.operator, kernel.backend) for kernel in of_kind(kind)} == {
            (operator, backend) for operator in operators for backend in Backend}
    for kind in ("cheat", "wrong", "honest"):
        assert {kernel.backend for kernel in of_kind(kind)} == {"numba", "triton"}
        assert any(kernel.quick for kernel in of_kind(kind))
    listed = {FOLDER / kernel.name for kernel in CORPUS}
    present = {path for folder in ("cheats", "wrong", "honest") for path in (FOLDER / folder).glob("*.py")}
    assert listed == present
    assert all(kernel.outcomes == (Outcome.PASSED,) for kernel in of_kind("honest"))
    assert all(Outcome.PASSED not in (*kernel.outcomes, *kernel.device_outcomes)
               for kernel in CORPUS if kernel.kind != "honest")
    assert all(kernel.judged_at(Place.DEVICE) for kernel in CORPUS if kernel.backend is Backend.TRITON)
    assert all(kernel.note.endswith(".") for kernel in CORPUS)


def test_the_kernel_that_knows_all_listed_sizes_knows_them_all() -> None:
    """It shows that drawn sizes are needed, as long as no list of the operator names a size that it lacks."""
    spec = registry.get("rms_norm")
    source = next(kernel.source for kernel in CORPUS if kernel.name == "wrong/listed_sizes_only.py")
    listed = next(ast.literal_eval(node.value) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Assign)
                  and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "_LISTED")
    points = [point for workload in spec.workloads.values() for shapes in workload.shapes.values() for point in shapes]
    assert {case.dims["cols"] for case in (*spec.cases, *points)} <= set(listed)
