"""Arrays that all iterations of a `prange` loop share may be written at the iteration's own index alone."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from importlib import import_module

import pytest

from harness.agents.playbook.agent import BOOKS
from harness.campaign.context import context_of
from harness.campaign.start import start_state
from harness.domain.goal import Goal
from harness.domain.vocabulary import Backend, Tier
from harness.engine.actions import AskAgent
from harness.evaluation.selftest.corpus import whole_corpus
from harness.evaluation.source.structure import read_structure
from harness.evaluation.static.candidate import Candidate
from harness.evaluation.static.check import findings
from harness.evaluation.static.findings import Finding, Severity
from harness.evaluation.static.races import check_races
from harness.operators import registry
from harness.operators.base import OperatorSpec

FRAME = '''import numba
import numpy as np
PARAMS = {}


@numba.njit
def _zero(part):
    for j in range(part.shape[0]):
        part[j] = 0.0


@numba.njit
def _put(part, at, value):
    spot = at + 1
    part[spot - 1] = value


@numba.njit
def _same(part):
    return part[:]


@numba.njit
def _deep(part):
    _zero(part)


@numba.njit(parallel=True)
def _kernel(x, weight, out, part, wide, eps):
    rows, cols = x.shape
    whole = np.empty(16, np.float32)
#LOOP


def run(x, weight, out, *, eps):
    _kernel(x, weight, out, np.empty(16, np.float32), np.empty((x.shape[0], 16), np.float32), np.float32(eps))
'''
RACES = [
    "part[0] = 0.0",
    "part[3] += x[row, 0]",
    "part[:] = 0.0",
    "part[:row] = 0.0",
    "for j in range(16):\n    part[j] = x[row, j]",
    "for j in range(row + 1):\n    part[j] = 1.0",
    "for j in range(0, row):\n    part[j] = 1.0",
    "j = 0\nwhile j < 16:\n    part[j] = x[row, j]\n    j += 1",
    "whole[0] = x[row, 0]",
    "own = part\nown[0] = 0.0",
    "own = part[1:]\nown[0] = 0.0",
    "own = wide[0]\nown[0] = 0.0",
    "own, other = part, row\nown[0] = 0.0",
    "own = part if row < 0 else whole\nown[0] = 0.0",
    "own = part.reshape((4, 4))\nown[0, 0] = 0.0",
    "part.reshape((4, 4))[0, 0] = 0.0",
    "own = _same(part)\nown[0] = 0.0",
    "part.fill(0.0)",
    "np.multiply(x[row, :16], weight[:16], part)",
    "np.exp(x[row, :16], out=part)",
    "_zero(part)",
    "_zero(part=part)",
    "_deep(part)",
    "_put(part, 0, x[row, 0])",
    "_zero(wide[0])",
    "for own in numba.literal_unroll((part, whole)):\n    own[0] = x[row, 0]",
    "for own in wide:\n    own[0] = x[row, 0]",
    "if row >= 0:\n    part[0] = 1.0",
    "if row == row:\n    part[0] = 1.0",
    "for inner in numba.prange(16):\n    part[inner] = x[row, inner]",
    "for j in range(16):\n    if j < row:\n        part[j] = 1.0",
    "for j in range(16):\n    if j < row:\n        continue\n    part[j] = 1.0",
    "for j in range(16):\n    if j == row:\n        continue\n    part[j] = 1.0",
    "for j in range(16):\n    if j != row:\n        part[j] = 1.0",
    "for j in range(16):\n    if j < row or j >= row + 1:\n        part[j] = 1.0",
    "for j in range(16):\n    if j >= row and j > row - 2:\n        part[j] = 1.0",
    "for j in range(16):\n    part[j] = 1.0\n    if j != row:\n        continue",
    "for j in range(16):\n    if row <= j < row + 1:\n        continue\n    part[j] = 1.0",
]
FAIR = [
    "out[row, 0] = x[row, 0]",
    "out[row, :] = x[row, :] * weight",
    "own = np.empty(16, np.float32)\nown[0] = 1.0\nown[:] = 2.0\n_zero(own)\n_deep(own)\nown.fill(0.0)",
    "own = wide[row]\nown[0] = 1.0\nfor j in range(16):\n    own[j] = x[row, j]\n_zero(own)",
    "_zero(wide[row])\n_put(part, row, x[row, 0])",
    "wide[numba.get_thread_id(), 0] = 1.0",
    "start = row * 4\nfor c in range(start, start + 4):\n    out[0, c] = x[0, c]",
    "at = row\nwhile at < rows:\n    out[at, 0] = 1.0\n    at += cols",
    "total = np.float32(0.0)\nfor c in range(cols):\n    total += x[row, c]\nout[row, 0] = total",
    "if row == 0:\n    part[0] = 1.0",
    "base = 0\nif row > 0:\n    base = 8\nfor j in range(base, base + 8):\n    part[j] = 1.0",
    "np.multiply(x[row, :16], weight[:16], wide[row])",
    "own = [x[row, 0]]\nown.append(x[row, 1])",
    "for j, value in enumerate(x[row]):\n    out[row, j] = value",
    "own = x[row] * 2.0\nown[0] = 0.0",
    "for j in range(rows):\n    if j % 4 != row:\n        continue\n    out[j, 0] = 1.0",
    "for j in range(rows):\n    if j < row * 4 or j >= row * 4 + 4:\n        continue\n    out[j, 0] = 1.0",
    "for j in range(rows):\n    if row * 4 <= j < row * 4 + 4:\n        out[j, 0] = 1.0",
    "for j in range(rows):\n    if j >= row and row + 1 > j:\n        for c in range(cols):\n            out[j, c] = 1",
]


def races(source: str, operator: str = "rms_norm") -> list[Finding]:
    candidate = Candidate(read_structure(source, Backend.NUMBA), registry.get(operator), ())
    check_races(candidate)
    return list(candidate.report.findings())


def loop_of(body: str, head: str = "for row in numba.prange(rows):") -> str:
    loop = f"{head}\n{textwrap.indent(body, '    ')}"
    return FRAME.replace("#LOOP", textwrap.indent(loop, "    "))


@pytest.mark.parametrize("body", RACES)
def test_a_store_that_iterations_share_is_refused_at_its_line(body: str) -> None:
    source = loop_of(body)
    found = races(source)
    assert found, source
    first = source.split("\n").index("    for row in numba.prange(rows):") + 2
    lines = {finding.reason.line for finding in found}
    assert lines <= set(range(first, first + len(body.split("\n"))))
    assert "row" in found[0].reason.text


@pytest.mark.parametrize("body", FAIR)
def test_what_belongs_to_the_iteration_passes(body: str) -> None:
    assert not races(loop_of(body))


@pytest.mark.parametrize("head", ["for row in range(rows):", "for row in _walk(rows):"])
def test_prange_under_another_name_counts_and_range_does_not(head: str) -> None:
    source = loop_of("part[0] = x[row, 0]", head).replace("PARAMS = {}", "PARAMS = {}\n_walk = numba.prange")
    assert bool(races(source)) == ("_walk" in head)


def test_the_static_stage_blocks_it() -> None:
    found = findings(loop_of("part[0] = x[row, 0]"), registry.get("rms_norm"), Backend.NUMBA)
    assert next((f.reason.code, f.severity) for f in found) == ("parallel_race", Severity.BLOCK)


def test_without_parallel_prange_is_range() -> None:
    assert not races(loop_of("part[0] = x[row, 0]").replace("parallel=True", "parallel=False"))
    assert races(loop_of("part[0] = x[row, 0]").replace("parallel=True", "parallel=(1 > 0)"))


def test_a_kernel_function_that_calls_itself_ends_the_search() -> None:
    source = FRAME.replace("    _zero(part)\n", "    _deep(part)\n")
    assert not races(source.replace("#LOOP", "    for row in numba.prange(rows):\n        _deep(part)"))


def test_no_kernel_that_ships_and_no_honest_one_is_taken_for_a_race() -> None:
    for spec in registry.all_operators():
        assert not races(spec.baseline(Backend.NUMBA), spec.name)
    for kernel in whole_corpus():
        if kernel.backend is Backend.NUMBA and kernel.kind == "honest":
            assert not races(kernel.source, kernel.operator), kernel.name


@pytest.mark.parametrize("spec", registry.all_operators(), ids=lambda spec: spec.name)
def test_no_step_of_a_ladder_is_taken_for_a_race(spec: OperatorSpec) -> None:
    """Every step from the baseline and from all that leads to parallel rows, on a place with several threads."""
    goal = Goal(spec.name, Backend.NUMBA, "cpu-test-8t", "llm", grant=Tier.HEAVY)
    context = context_of(start_state(goal), AskAgent(1, "diagnosis"), hardware={"threads": 8})
    book = import_module(BOOKS[spec.name, Backend.NUMBA])
    todo, seen = [spec.baseline(Backend.NUMBA)], set()
    while todo and len(seen) < 24:
        source = todo.pop(0)
        seen.add(source)
        assert not races(source, spec.name), source
        now = replace(context, incumbent=replace(context.incumbent, source=source))
        made = [move.transform(now) for move in book.moves(now)]
        todo += [text for text in made if text is not None and text not in seen and text not in todo]
    assert any("prange" in source for source in seen)
