"""Cuts a candidate down to what its kernel functions need: no ``run``, no host code, nothing else at module level."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from harness.domain.vocabulary import Backend
from harness.evaluation.source.structure import (
    KERNEL_DECORATORS,
    Structure,
    assigned_name,
    decorator_path,
    read_structure,
)

MODULES = ("triton", "math", "torch")
"""Top packages whose imports are kept."""
_CALLS = ("triton.language.", "triton.experimental.gluon.language.", "math.")
_BUILTINS = {"float", "int", "bool", "str", "tuple", "len", "min", "max", "abs", "round"}


def kernel_source(source: str) -> str:
    """The text of a module that holds the kernel functions of ``source`` and, of its imports and constants, those that
    they mention, directly or through one another.

    A name that a kernel function has keeps that function, whatever else the file binds to it. Decorators other than
    ``jit`` are host code and go too: what ``heuristics`` chose is in the recorded constants.

    Raises:
        SourceError: ``source`` cannot be parsed.
    """
    found = read_structure(source, Backend.TRITON)
    needed = _needed(found)
    kept = [kept for statement in found.tree.body if (kept := _keep(found, statement, needed)) is not None]
    return ast.unparse(ast.fix_missing_locations(ast.Module(body=kept, type_ignores=[]))) + "\n"


def _needed(found: Structure) -> set[str]:
    """Names mentioned by kernel functions, and by the constants so mentioned."""
    pending: list[ast.AST] = [_bare(found, function) for function in found.kernels.values()]
    assigned = {name: statement for statement in found.tree.body if (name := assigned_name(statement)) is not None}
    names: set[str] = set()
    while pending:
        for name in _mentioned(pending.pop()):
            if name not in names:
                names.add(name)
                if name in assigned and name not in found.kernels:
                    pending.append(assigned[name])  # with its annotation: Triton reads constants by it
    return names


def _mentioned(node: ast.AST) -> Iterator[str]:
    return (inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name))


def _keep(found: Structure, statement: ast.stmt, needed: set[str]) -> ast.stmt | None:
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return _keep_import(statement, needed)
    if isinstance(statement, ast.FunctionDef):
        return _bare(found, statement) if found.kernels.get(statement.name) is statement else None
    name = assigned_name(statement)
    if name is None or name not in needed or name in found.kernels or name in found.hosts:
        return None
    return statement if all(_is_constant(found, node) for node in ast.walk(statement)) else None


def _keep_import(statement: ast.Import | ast.ImportFrom, needed: set[str]) -> ast.stmt | None:
    if isinstance(statement, ast.ImportFrom) and statement.level:
        return None
    names = [
        alias for alias in statement.names
        if (alias.asname or alias.name.partition(".")[0]) in needed
        and (statement.module or "" if isinstance(statement, ast.ImportFrom) else alias.name).partition(".")[0]
        in MODULES
    ]
    if not names:
        return None
    if isinstance(statement, ast.Import):
        return ast.Import(names)
    return ast.ImportFrom(statement.module, names, 0)


def _bare(found: Structure, function: ast.FunctionDef) -> ast.FunctionDef:
    """The function with its jit decorator alone."""
    decorators = [
        node for node in function.decorator_list if decorator_path(found, node) in KERNEL_DECORATORS[Backend.TRITON]
    ]
    copied = {name: value for name, value in ast.iter_fields(function) if name != "decorator_list"}
    return ast.FunctionDef(**copied, decorator_list=decorators)


def _is_constant(found: Structure, node: ast.AST) -> bool:
    """Nothing that runs code of the file: calls only of Triton's constants, mathematics and a few builtins."""
    if isinstance(node, ast.Call):
        path = found.dotted(node.func)
        if path is not None:
            return path.startswith(_CALLS)
        return isinstance(node.func, ast.Name) and node.func.id in _BUILTINS and node.func.id not in found.bound_lines
    return not isinstance(node, ast.Lambda | ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom)
