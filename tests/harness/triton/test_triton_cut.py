"""What is left of a file when only its kernel functions count."""

from __future__ import annotations

import ast
import textwrap

import pytest

from harness.backends.triton.derive.cut import kernel_source
from harness.domain.vocabulary import Backend
from harness.operators import registry

WHOLE = '''
"""A file."""
import math
import os
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice as ld, other

PARAMS = {"BLOCK": 64}
LOG2E: tl.constexpr = tl.constexpr(math.log2(math.e))
HALF = LOG2E * 0.5
UNUSED = 7
TABLE = [os.system("x")]
MADE = helper()


def helper():
    return 1


@triton.heuristics({"EVEN": lambda a: helper()})
@triton.jit(do_not_specialize=["n"])
def _first(x, n, EVEN: tl.constexpr):
    tl.store(x, ld.tanh(_second(n) * HALF) + MADE + TABLE)


@triton.jit
def _second(n):
    return n


_second = _first
helper()


def run(x, out):
    _first[(1,)](x, 1)
'''


def names(source: str) -> list[str]:
    bound = []
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            bound += [alias.asname or alias.name for alias in statement.names]
        elif isinstance(statement, ast.Assign):
            bound.append(ast.unparse(statement.targets[0]))
        else:
            bound.append(getattr(statement, "name", None) or ast.unparse(statement.target))
    return bound


def test_only_kernel_functions_and_what_they_mention_are_left():
    cut = kernel_source(WHOLE)
    assert names(cut) == ["math", "triton", "tl", "ld", "LOG2E", "HALF", "_first", "_second"]
    assert "LOG2E: tl.constexpr = " in cut
    assert "heuristics" not in cut
    assert "do_not_specialize" in cut
    assert kernel_source(cut) == cut


@pytest.mark.parametrize("value", ["(lambda: 1)()", "helper()", "_first.fn", "open('x')", "[f() for f in (helper,)]",
                                   "torch.load('x')", "(a := 1)", "__import__('os')"])
def test_values_that_run_something_are_left_out(value):
    source = WHOLE.replace("HALF = LOG2E * 0.5", f"HALF = {value}")
    kept = names(kernel_source(source))
    assert ("HALF" in kept) == (value == "_first.fn")  # reads only; a kernel that mentions it does not compile


@pytest.mark.parametrize("value", ["-1.5", "(1, 2)", "{'a': 1}['a']", "tl.float32", "1 << 4 | 3", "float('inf')",
                                   "max(4, UNUSED)", "not None", "math.pi"])
def test_plain_values_stay(value):
    assert "HALF" in names(kernel_source(WHOLE.replace("HALF = LOG2E * 0.5", f"HALF = {value}")))


def test_the_last_definition_of_a_kernel_function_counts_as_in_python():
    source = WHOLE + textwrap.dedent("""
        @triton.jit
        def _first(x, n):
            tl.store(x, n)
        """)
    assert names(kernel_source(source)).count("_first") == 1
    assert "do_not_specialize" not in kernel_source(source)


@pytest.mark.parametrize("operator", registry.NAMES)
def test_baselines_need_no_torch(operator):
    cut = kernel_source(registry.get(operator).baseline(Backend.TRITON))
    assert "torch" not in cut
    assert "def run" not in cut
