"""Edits change what they name and leave every other byte alone."""

from __future__ import annotations

import pytest

from harness.agents.playbook import edit
from harness.domain.vocabulary import Backend
from harness.operators import registry

SOURCES = [pytest.param(spec.baseline(backend), id=f"{spec.name}-{backend}")
           for spec in registry.all_operators() for backend in Backend]


@pytest.mark.parametrize("source", SOURCES)
def test_an_edit_that_changes_nothing_changes_no_byte(source: str) -> None:
    for name in edit.functions(source):
        assert edit.replace_body(source, name, edit.body_text(source, name)) == source
        assert edit.replace_function(source, name, edit.function_text(source, name)) == source


@pytest.mark.parametrize("source", SOURCES)
def test_a_new_body_leaves_the_other_functions_and_the_head_alone(source: str) -> None:
    for name in edit.functions(source):
        changed = edit.replace_body(source, name, "    pass\n")
        assert edit.body_text(changed, name) == "    pass"
        assert edit.argument_names(changed, name) == edit.argument_names(source, name)
        for other in set(edit.functions(source)) - {name}:
            assert edit.function_text(changed, other) == edit.function_text(source, other)


@pytest.mark.parametrize("source", SOURCES)
def test_params_are_replaced_as_data(source: str) -> None:
    before = edit.params(source)
    key = next(iter(before))
    table = {"short": 1, "long": 2}
    changed = edit.set_params(source, {key: table})
    assert edit.params(changed) == {**before, key: table}
    assert edit.set_params(changed, {key: before[key]}) == source


def test_a_decorator_and_a_helper_in_front() -> None:
    source = "import numba\n\n\n@numba.njit\ndef _f(x):\n    return x\n"
    changed = edit.set_decorator(source, "_f", "numba.njit(parallel=True)")
    assert edit.decorator(changed, "_f") == "numba.njit(parallel=True)"
    helped = edit.insert_before(changed, "_f", "@numba.njit\ndef _g(x):\n    return x\n")
    assert list(edit.functions(helped)) == ["_g", "_f"] and "\n\n\n@numba.njit(parallel=True)\n" in helped


def test_what_is_missing_is_empty() -> None:
    assert edit.function_text("x = 1\n", "_f") == edit.body_text("x = 1\n", "_f") == ""
    assert edit.decorator("x = 1\n", "_f") == ""
    assert edit.params("x = 1\n") == {} and edit.argument_names("x = 1\n", "_f") == ()
