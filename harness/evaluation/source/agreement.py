"""Whether our reading of scopes agrees with the compiler's: ``symtable`` decides what a name means, not we.

Everything that tells locals from builtins and module-level names (the allowlist, the normal form) rests on ``scopes``.
A file that the two read differently is no file that anybody has reviewed.
"""

from __future__ import annotations

import ast
import symtable
from collections import Counter
from collections.abc import Iterator
from typing import Any

from harness.domain.parsing import syntax_tree
from harness.evaluation.source.scopes import Scope, nodes_below
from harness.evaluation.source.steps import walk

_COMPREHENSIONS = ("listcomp", "setcomp", "dictcomp", "genexpr")
Reading = Counter[tuple[str, int, frozenset[str]]]
"""Function's name, line, and the names in it that are global; comprehensions count with the function around them."""


def disagreements(tree: ast.Module) -> set[str]:
    """The names that ``scopes`` and the compiler resolve differently somewhere; empty where they agree."""
    text = ast.unparse(_plain(tree))  # lines of both readings are those of this text
    ours, theirs = _ours(syntax_tree(text)), _theirs(symtable.symtable(text, "candidate.py", "exec"))
    names: set[str] = set()
    for reading, other in ((ours - theirs, theirs - ours), (theirs - ours, ours - theirs)):
        for function, line, found in reading:
            rest = next((o for f, n, o in other if (f, n) == (function, line)), frozenset())
            names |= (found ^ rest) or {function}
    return names


def _plain(node: Any) -> Any:
    """A copy of ``node`` without annotations: those are read in another block under the ``annotations`` future and bind
    nothing here. Only what ``ast.unparse`` reads is copied."""
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if not isinstance(node, ast.AST) or not node._fields:
        return node
    parts = {name: _plain(getattr(node, name, None)) for name in node._fields}
    if isinstance(node, ast.arg):
        parts["annotation"] = None
    elif isinstance(node, ast.FunctionDef):
        parts["returns"] = None
    elif isinstance(node, ast.AnnAssign):
        parts["annotation"] = ast.Constant(0)
    made: Any = type(node)(**parts)
    if isinstance(node, ast.stmt):
        made.lineno = node.lineno
    return made


def _ours(tree: ast.Module) -> Reading:
    found: dict[int, set[str]] = {}
    scopes: list[tuple[str, int, Scope]] = []
    for node, scope in nodes_below(tree.body, None):
        home = scope
        while home is not None and home.comprehension:
            home = home.parent
        if home is None or home.node is None:
            continue
        if id(home) not in found:
            found[id(home)] = set()
            scopes.append((getattr(home.node, "name", "lambda"), home.node.lineno, home))
        if isinstance(node, ast.Name) and scope is not None and scope.owner(node.id) is None:
            found[id(home)].add(node.id)
        elif isinstance(node, ast.Global):
            found[id(home)].update(node.names)
    return Counter((name, line, frozenset(found[id(scope)])) for name, line, scope in scopes)


def _theirs(module: symtable.SymbolTable) -> Reading:
    return Counter(_functions(module))


def _functions(table: symtable.SymbolTable) -> Iterator[tuple[str, int, frozenset[str]]]:
    todo = [table]
    while todo:
        here = todo.pop()
        todo.extend(here.get_children())
        if here.get_type() == "function" and here.get_name() not in _COMPREHENSIONS:
            yield here.get_name(), here.get_lineno(), frozenset(_globals(here))


def _globals(table: symtable.SymbolTable) -> Iterator[str]:
    yield from (symbol.get_name() for symbol in table.get_symbols() if symbol.is_global())
    for below in table.get_children():
        if below.get_name() in _COMPREHENSIONS:
            yield from _globals(below)


def line_of(tree: ast.Module, name: str) -> int | None:
    """The first line where ``name`` stands."""
    lines = [node.lineno for node in walk(tree) if isinstance(node, ast.Name) and node.id == name]
    return min(lines, default=None)
