"""PARAMS is one literal dict, held against what the operator declares."""

from __future__ import annotations

import pytest

from harness.domain.errors import SourceError
from harness.domain.vocabulary import Backend
from harness.evaluation.source.params import narrowed, problems, read_params, same_value, value_problem
from harness.operators import registry

SPEC = registry.get("rms_norm")


def test_literals_tables_and_absence() -> None:
    source = 'PARAMS = {"BLOCK": {"short": 8, "long": -1}, "mode": "a", "flag": True}\n'
    assert read_params(source) == {"BLOCK": {"short": 8, "long": -1}, "mode": "a", "flag": True}
    assert read_params("PARAMS: dict = {}\n") == {}
    assert read_params("x = 1\n") == {}


@pytest.mark.parametrize("source", [
    'PARAMS = dict(BLOCK=8)\n', 'PARAMS = {"BLOCK": 4 * 2}\n', 'PARAMS = {**OTHER}\n', "PARAMS = {8: 1}\n",
    'PARAMS = {"BLOCK": [8]}\n', 'PARAMS = {"BLOCK": 8.0}\n', 'PARAMS = {"BLOCK": 8, "BLOCK": 16}\n',
    'PARAMS = {"BLOCK": {"short": {"deep": 1}}}\n', 'PARAMS = {"BLOCK": None}\n'])
def test_anything_but_a_literal_dict_is_refused(source: str) -> None:
    with pytest.raises(SourceError) as caught:
        read_params(source)
    assert caught.value.code == "params_not_literal"
    assert caught.value.line == 1


@pytest.mark.parametrize("later", [
    "PARAMS = {}", "PARAMS |= {'BLOCK': 1}", "PARAMS['BLOCK'] = 1", "PARAMS['BLOCK']['short'] = 1", "del PARAMS",
    "PARAMS.update(BLOCK=1)", "for PARAMS in ():\n    pass", "import math as PARAMS", "def PARAMS(): pass",
    "def f():\n    PARAMS = {}", "def f(PARAMS): pass", "def f():\n    global PARAMS\n    PARAMS = {}",
    "x = [PARAMS for PARAMS in ()]", "if (PARAMS := {}):\n    pass"])
def test_any_later_change_is_refused(later: str) -> None:
    with pytest.raises(SourceError) as caught:
        read_params('PARAMS = {"BLOCK": 8}\n' + later + "\n")
    assert caught.value.code == "params_rebound"
    assert caught.value.line is not None
    assert caught.value.line >= 2


@pytest.mark.parametrize(("key", "value", "code"), [
    ("BLOCK", 8, None), ("BLOCK", 0, "range"), ("BLOCK", 65536, "range"), ("BLOCK", 12, "power_of_two"),
    ("BLOCK", True, "kind"), ("BLOCK", "8", "kind"), ("WARPS", 4, "undeclared"), ("num_warps", 4, "undeclared"),
    ("BLOCK", {"short": 4, "medium": 8, "long": 16}, None), ("BLOCK", {"short": 4, "long": 16}, "buckets"),
    ("BLOCK", {"short": 4, "medium": 8, "long": 16, "huge": 1}, "buckets"),
    ("BLOCK", {"short": 4, "medium": 8, "long": 12}, "power_of_two"), ("BLOCK", {}, "buckets")])
def test_values_against_the_declaration(key: str, value: object, code: str | None) -> None:
    problem = value_problem(key, value, SPEC, Backend.NUMBA)
    assert (problem.code if problem else None) == code


def test_problems_carry_the_line_of_their_key() -> None:
    found = problems({"BLOCK": 3, "x": 1}, SPEC, Backend.NUMBA, {"BLOCK": 4, "x": 5})
    assert [(problem.key, problem.code, problem.line) for problem in found] == [
        ("BLOCK", "power_of_two", 4), ("x", "undeclared", 5)]


def test_a_goal_narrows_ranges() -> None:
    spec = narrowed(SPEC, {"BLOCK": (4, 16)})
    assert value_problem("BLOCK", 16, spec, Backend.NUMBA) is None
    assert value_problem("BLOCK", 32, spec, Backend.NUMBA) is not None
    assert value_problem("num_warps", 32, spec, Backend.TRITON) is None


def test_equality_tells_true_from_one() -> None:
    assert same_value({"a": 1}, {"a": 1})
    assert not same_value({"a": 1}, {"a": True})
