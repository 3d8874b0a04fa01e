"""Every place that gives a name a meaning, judged in one routine: imports, parameters, targets of any kind,
definitions, exception and match captures, declarations and keyword names."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from harness.evaluation.source.steps import walk
from harness.evaluation.source.structure import is_kernel, names_bound_by
from harness.evaluation.static.candidate import Candidate

_BUILTINS = frozenset(name for name in dir(builtins) if not name.startswith("_"))
_KEPT_ANYWHERE = frozenset({
    "breakpoint", "classmethod", "compile", "delattr", "dir", "eval", "exec", "getattr", "globals", "hasattr", "locals",
    "memoryview", "open", "property", "setattr", "staticmethod", "super", "vars"})
"""Builtins that reach out of a file: a name of its own for them would only mislead."""

_ASSIGNMENTS = ast.Assign | ast.AnnAssign


def check_bindings(candidate: Candidate) -> None:
    """Report bindings of Python's own names, of the names of imports, and of builtins where those have a meaning."""
    for statement in candidate.found.tree.body:
        kernel = isinstance(statement, ast.FunctionDef) and is_kernel(candidate.found, statement)
        for node in walk(statement):
            line = getattr(node, "lineno", None) or statement.lineno
            for name in names_given_by(node):
                if name.startswith("__") and name != "__future__":
                    candidate.report.add("private_name", f"{name} is a name that Python itself uses. Rename it.", line)
                elif not isinstance(node, ast.keyword):
                    _check_shadowing(candidate, statement, node, name, line, kernel=kernel)


def _check_shadowing(candidate: Candidate, statement: ast.stmt, node: ast.AST, name: str, line: int, *,
                     kernel: bool) -> None:
    outermost = node is statement or (candidate.parent(node) is statement and isinstance(statement, _ASSIGNMENTS))
    if not isinstance(node, ast.alias) and not outermost and name in candidate.found.imports:
        candidate.report.add("shadows_import", f"{name} is an import; a local of that name hides what the code does. "
                                               "Rename it.", line)
    elif name in _KEPT_ANYWHERE or (name in _BUILTINS and (
            _renames(node, name) if isinstance(node, ast.alias) else outermost or (
                not kernel and _is_function(candidate, node)))):
        candidate.report.add("shadows_builtin", f"{name} is one of Python's own functions; another meaning of it hides "
                                                "what the code does. Rename it.", line)


def _renames(alias: ast.alias, name: str) -> bool:
    """``from numpy import zeros as list``, but not ``from triton.language import max``."""
    return alias.asname == name and alias.name.rpartition(".")[2] != name


def _is_function(candidate: Candidate, node: ast.AST) -> bool:
    """Whether a name is given to a function. Data under the name of a builtin is never called."""
    above = candidate.parent(node)
    return isinstance(node, ast.FunctionDef) or (isinstance(above, ast.Assign | ast.AnnAssign | ast.NamedExpr)
                                                 and isinstance(above.value, ast.Lambda))


def names_given_by(node: ast.AST) -> Iterator[str]:
    """The names that this one node binds, deletes, declares or passes on as a keyword."""
    if isinstance(node, ast.alias):
        yield from node.name.split(".")
        if node.asname is not None:
            yield node.asname
    elif isinstance(node, ast.arg | ast.keyword) and node.arg is not None:
        yield node.arg
    elif isinstance(node, ast.Global | ast.Nonlocal):
        yield from node.names
    elif isinstance(node, ast.MatchClass):
        yield from node.kwd_attrs
    elif type(node).__name__ in ("TypeVar", "ParamSpec", "TypeVarTuple"):  # Python 3.12
        yield node.name  # type: ignore[attr-defined]
    elif not isinstance(node, ast.Import | ast.ImportFrom):
        yield from names_bound_by(node)
