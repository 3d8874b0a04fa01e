"""Real sources to transform in property tests, and transformations that do not use the code under test."""

from __future__ import annotations

import io
import tokenize
import types

from harness.domain.vocabulary import Backend
from harness.operators import registry

SOURCES: dict[str, str] = {
    f"{spec.name}/{backend}": spec.baseline(backend) for spec in registry.all_operators() for backend in Backend}

COMPREHENSIONS = '''"""Scopes within scopes."""

PARAMS = {"BLOCK": 8}
LIMIT = 4


def helper(values, *, scale=1):
    total = 0
    squares = [item * item for item in values if item < LIMIT]
    pairs = {left: right for left, right in zip(squares, values)}

    def inner(step):
        shifted = step + total
        return [shifted + item for item in squares]

    chooser = lambda step, base=2: step * base + scale
    if (largest := max(squares)) > 3:
        total = largest
    for total in range(3):
        pass
    return inner(total), pairs, chooser(total)
'''
SOURCES["comprehensions"] = COMPREHENSIONS


def locals_of(source: str) -> dict[str, tuple[int, int, set[str]]]:
    """Per module-level function: first and last line, and the locals that Python's own compiler finds (not the
    parameters, nor the parameters of functions inside)."""
    import ast

    found = {}
    code = compile(source, "sample.py", "exec")
    spans = {node.name: (node.lineno, node.end_lineno or node.lineno) for node in ast.parse(source).body
             if isinstance(node, ast.FunctionDef)}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType) and constant.co_name in spans:
            names, parameters = set(), set()
            todo = [constant]
            while todo:
                inner = todo.pop()
                count = inner.co_argcount + inner.co_kwonlyargcount
                parameters |= set(inner.co_varnames[:count])
                names |= {*inner.co_varnames[count:], *inner.co_cellvars}
                todo.extend(c for c in inner.co_consts if isinstance(c, types.CodeType))
            first, last = spans[constant.co_name]
            found[constant.co_name] = (first, last, {n for n in names - parameters if n.isidentifier()})
    return found


def rename(source: str, lines: tuple[int, int], old: str, new: str) -> str:
    """Replace a name between two lines, attributes and keyword names apart; works on tokens, not on a tree."""
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    depth, result = 0, []
    for position, token in enumerate(tokens):
        if token.string in ("(", "[", "{"):
            depth += 1
        elif token.string in (")", "]", "}"):
            depth -= 1
        before = tokens[position - 1].string if position else ""
        after = tokens[position + 1].string if position + 1 < len(tokens) else ""
        keyword = depth > 0 and after == "=" and before in ("(", ",", "\n", "")
        if (token.type == tokenize.NAME and token.string == old and lines[0] <= token.start[0] <= lines[1]
                and before != "." and not keyword):
            result.append((token.start, token.end, new))
    text = source.split("\n")
    for (row, start), (_, end), word in reversed(result):
        text[row - 1] = text[row - 1][:start] + word + text[row - 1][end:]
    return "\n".join(text)
