"""Scopes as the compiler sees them."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.evaluation.source import scopes
from harness.evaluation.source.agreement import disagreements

PIECES = (
    "a = b", "b = [a for a in b]", "c = [(lambda: (a := c)) for b in a]", "a = {b: c for b in c if (d := b)}",
    "d = lambda a, b=c: (c := a)", "for a in b:\n    c = a", "global c", "d = [[(a := e) for e in c] for c in b]",
    "def inner(a, b=c):\n    d = a\n    return b", "def inner():\n    nonlocal x\n    x = d",
    "def inner():\n    global d\n    return (d, lambda: d)", "import a", "import b.c as d", "del x",
    "class Box:\n    c = a\n    def of(self):\n        return c", "b: a = c", "d = (lambda: (lambda: (x := a)))",
    "try:\n    c = 1\nexcept a as b:\n    d = b", "a = sum(b for b in c for d in (lambda: (b, d, a)))", "eval(a)",
)


def module(pieces: list[str]) -> ast.Module | None:
    body = "".join("    " + line + "\n" for piece in ["x = 0", *pieces] for line in piece.split("\n"))
    try:
        tree = ast.parse(f"def run():\n{body}")
        compile(tree, "x.py", "exec", dont_inherit=True)
    except SyntaxError:
        return None
    return tree


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=5))
@settings(max_examples=150, deadline=None)
def test_our_reading_is_the_compiler_s(pieces: list[str]) -> None:
    tree = module(pieces)
    assert tree is None or disagreements(tree) == set()


def test_a_faulty_reading_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = module(["y = [(lambda: (eval := 1)) for i in ()]", "eval(x)"])
    assert tree is not None and disagreements(tree) == set()
    monkeypatch.setattr(scopes, "_bound_through", lambda node: {
        part.target.id for part in ast.walk(node) if isinstance(part, ast.NamedExpr)})
    assert disagreements(tree) == {"eval"}
