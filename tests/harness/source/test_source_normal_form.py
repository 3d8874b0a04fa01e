"""Renaming a local changes nothing; anything else changes the digest."""

from __future__ import annotations

import ast
import io
import tokenize

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from source_samples import SOURCES, locals_of, rename

from harness.domain.errors import SourceError
from harness.evaluation.source import steps
from harness.evaluation.source.normal_form import normal_digest

names = st.sampled_from(sorted(SOURCES))


@settings(deadline=None)
@given(names, st.data())
def test_renaming_locals_keeps_the_digest(name: str, data: st.DataObject) -> None:
    source = SOURCES[name]
    functions = {key: value for key, value in locals_of(source).items() if value[2]}
    function = data.draw(st.sampled_from(sorted(functions)))
    first, last, found = functions[function]
    renamed = source
    chosen = data.draw(st.lists(st.sampled_from(sorted(found)), min_size=1, max_size=3, unique=True))
    for number, old in enumerate(chosen):
        renamed = rename(renamed, (first, last), old, f"fresh_{number}")
    assert renamed != source
    assert normal_digest(renamed) == normal_digest(source)


@settings(deadline=None)
@given(names, st.data())
def test_comments_and_blank_lines_keep_the_digest(name: str, data: st.DataObject) -> None:
    source = SOURCES[name]
    starts = {node.lineno for node in ast.walk(ast.parse(source)) if isinstance(node, ast.stmt)}
    line = data.draw(st.sampled_from(sorted(starts)))
    lines = source.split("\n")
    lines[line - 1:line - 1] = ["", "# " + data.draw(st.sampled_from(["why", "eval(x)", "PARAMS = {}"])), ""]
    assert normal_digest("\n".join(lines)) == normal_digest(source)


_SWAPS = {"+": "-", "-": "+", "*": "+", "/": "*", "//": "/", "%": "//", "<": "<=", "<=": "<", ">": ">=", "+=": "-=",
          "*=": "/=", "==": "!="}


@settings(deadline=None)
@given(names, st.data())
def test_any_other_token_changes_the_digest(name: str, data: st.DataObject) -> None:
    source = SOURCES[name]
    local = set().union(*(found for _, _, found in locals_of(source).values()))
    tokens = [t for t in tokenize.generate_tokens(io.StringIO(source).readline)
              if t.type == tokenize.NUMBER or t.string in _SWAPS
              or (t.type == tokenize.NAME and t.string not in local and t.string not in ("def", "for", "in", "if"))]
    token = data.draw(st.sampled_from(tokens))
    if token.type == tokenize.NUMBER:
        # In front: behind sixteen digits another one may leave the number as it is.
        new = token.string + "1" if token.string.startswith("0x") else "1" + token.string
    else:
        new = _SWAPS.get(token.string, token.string + "_other")
    lines = source.split("\n")
    row, start = token.start
    lines[row - 1] = lines[row - 1][:start] + new + lines[row - 1][token.end[1]:]
    changed = "\n".join(lines)
    try:
        digest = normal_digest(changed)
    except SourceError:
        assume(False)
    assert digest != normal_digest(source)


@pytest.mark.parametrize(("left", "right"), [
    ("x = 1\n", "x = 0x1\n"),
    ("x = (1)\n", "x = 1\n"),
    ('PARAMS = {"a": 1, "b": 2}\n', 'PARAMS = {"b": 2, "a": 1}\n'),
    ('PARAMS = {"a": 1, "b": 2}\n@jit\ndef f(a, b):\n    pass\n'
     'f[1](PARAMS["a"], PARAMS.get("b"), "b" in PARAMS, **PARAMS)\n',
     'PARAMS = {"b": 2, "a": 1}\n@jit\ndef f(a, b):\n    pass\n'
     'f[1](PARAMS["a"], PARAMS.get("b"), "b" in PARAMS, **PARAMS)\n'),
    ('def f():\n    """Doc."""\n    return 1\n', "def f():\n    return 1\n"),
    ("def f():\n    a = b = 1\n    return a + b\n", "def f():\n    x = y = 1\n    return x + y\n"),
    ("y = [a for a in x]\n", "y = [b for b in x]\n"),
])
def test_same_kernel(left: str, right: str) -> None:
    assert normal_digest(left) == normal_digest(right)


@pytest.mark.parametrize(("left", "right"), [
    ("x = 1\n", "x = True\n"),
    ("x = 1\n", "x = 1.0\n"),
    ("x = 0.0\n", "x = -0.0\n"),
    ("def f(a): return a\n", "def f(b): return b\n"),
    ("def f():\n    a = 1\n    b = 2\n    return a\n", "def f():\n    a = 1\n    b = 2\n    return b\n"),
    ("def f():\n    a = 1\n    return a\n", "def f():\n    return a\n"),
    ("def f():\n    a = g\n    return a\n", "def f():\n    a = h\n    return a\n"),
    ("def f():\n    global a\n    a = 1\n", "def f():\n    global b\n    b = 1\n"),
    ("def f():\n    g(a=1)\n", "def f():\n    g(b=1)\n"),
    ("def f(x=1): return x\n", "def f(x=2): return x\n"),
    ("def f(*, x=1): return x\n", "def f(*, x): return x\n"),
    ("@g\ndef f(): return 1\n", "def f(): return 1\n"),
    ('PARAMS = {"a": 1}\n', 'PARAMS = {"a": 2}\n'),
    ('PARAMS = {"a": 1}\n', 'PARAMS: dict = {"a": 1}\n'),
    ('PARAMS: dict = {"a": 1}\n', 'PARAMS: print() = {"a": 1}\n'),
    ('PARAMS = {"a": 1, "b": 2}\nx = list(PARAMS.values())[0]\n',
     'PARAMS = {"b": 2, "a": 1}\nx = list(PARAMS.values())[0]\n'),
    ('PARAMS = {"a": 1, "b": 2}\np = PARAMS\n', 'PARAMS = {"b": 2, "a": 1}\np = PARAMS\n'),
    ('PARAMS = {"a": 1, "a": 2}\n', 'PARAMS = {"a": 2, "a": 1}\n'),
    ("y = [a for a in x]\n", "y = (a for a in x)\n"),
    ("def f():\n    x = 1\n    def g(): return x\n    return g\n",
     "def f():\n    x = 1\n    def g(): return y\n    return g\n"),
    ("def f(x): return x\n", "def f(x, /): return x\n"),
])
def test_different_kernels(left: str, right: str) -> None:
    assert normal_digest(left) != normal_digest(right)


def test_what_is_remembered_takes_its_steps_again() -> None:
    calls = []

    @steps.remembered
    def reading(text: str) -> int:
        calls.append(text)
        steps.step(len(text))
        return len(text)

    for _ in range(2):
        with steps.bounded(10):
            assert reading("seven c") == 7
            assert steps.steps_left() == 3
    with pytest.raises(SourceError), steps.bounded(5):
        reading("seven c")
    assert reading("seven c") == 7 and calls == ["seven c"]
