"""Importing candidates from text and wording what goes wrong."""

from __future__ import annotations

import sys

import pytest

from harness.backends.candidate_module import entry, general_fault, import_candidate
from tests.harness import escape


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
    (escape.PYTHON + "def run(x):\n    raise MemoryError('too much')\n", "over_limit", "memory_limit", 3),
    (escape.PYTHON + "def run(x):\n    import sys\n    sys.exit(0)\n", "runtime_error", "early_exit", 4),
    ("def helper(x):\n    raise KeyError(x)\n\ndef run(x):\n    helper(x)\n", "runtime_error", "exception", 2),
])
def test_failures_have_outcome_code_and_line(source, outcome, code, line):
    found = failure(source, 0)
    assert (found["outcome"], found["code"], found["line"]) == (outcome, code, line)


@pytest.mark.parametrize("line", ["import os", "from os import path", "import torch", "eval('1')", "open('x')",
                                  "getattr(1, 'real')", "__import__('os')", "print(1)"])
def test_a_candidate_has_the_builtins_of_candidates_only(line):
    with pytest.raises((NameError, ImportError)):
        entry(import_candidate(f"def run():\n    {line}\n"))()


def test_annotations_mean_what_they_mean_to_everybody_who_imports_the_file():
    with pytest.raises(ZeroDivisionError):
        import_candidate("STEP: 1 // 0 = 8\ndef run():\n    pass\n")
