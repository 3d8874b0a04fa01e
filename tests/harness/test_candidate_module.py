"""Importing candidates from text and wording what goes wrong."""

from __future__ import annotations

import sys

import pytest

from harness.backends.candidate_module import entry, general_fault, import_candidate


@pytest.fixture(autouse=True)
def no_leftover_module():
    yield
    sys.modules.pop("candidate", None)


def failure(source: str, *arguments):
    with pytest.raises(BaseException) as caught:
        entry(import_candidate(source))(*arguments)
    return general_fault(caught.value)["fault"]


def test_run_is_found_and_called():
    assert entry(import_candidate("def run(x):\n    return x + 1\n"))(1) == 2


def test_a_missing_run_is_named():
    assert "run" in failure("def walk(x):\n    pass\n")["text"]


@pytest.mark.parametrize(("source", "outcome", "code", "line"), [
    ("def run(x):\n    return 1 // x\n", "runtime_error", "exception", 2),
    ("import nothing_of_this_name\n", "runtime_error", "exception", 1),
    ("def run(x)\n    pass\n", "compile_error", "syntax_error", 1),
    ("def run(x):\n    raise MemoryError('too much')\n", "over_limit", "memory_limit", 2),
    ("def run(x):\n    import sys\n    sys.exit(0)\n", "runtime_error", "early_exit", 3),
    ("def helper(x):\n    raise KeyError(x)\n\ndef run(x):\n    helper(x)\n", "runtime_error", "exception", 2),
])
def test_failures_have_outcome_code_and_line(source, outcome, code, line):
    found = failure(source, 0)
    assert (found["outcome"], found["code"], found["line"]) == (outcome, code, line)
