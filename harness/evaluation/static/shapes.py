"""Branches on exact sizes: legal tuning when a general path remains, a refusal of other shapes when not."""

from __future__ import annotations

import ast

from harness.evaluation.static.candidate import Candidate


def check_shapes(candidate: Candidate) -> None:
    """Note branches on one exact size; ask for a look where `run` refuses every other one."""
    run = candidate.found.run
    if run is None:
        return
    sizes = _size_names(run)
    for node in ast.walk(run):
        if isinstance(node, ast.Assert):
            if _exact(node.test, sizes, ast.Eq):
                _refuses(candidate, node)
        elif isinstance(node, ast.If):
            raises = bool(node.body) and isinstance(node.body[0], ast.Raise | ast.Return)
            if _exact(node.test, sizes, ast.NotEq) and raises:
                _refuses(candidate, node)
            elif _exact(node.test, sizes, ast.Eq):
                candidate.report.add("shape_branch", "This branch is for one exact size; other sizes take the other "
                                     "path.", node.lineno)


def _refuses(candidate: Candidate, node: ast.stmt) -> None:
    candidate.report.add("shape_refused", "Only one exact size is accepted here; every size of the operator must work.",
                         node.lineno)


def _size_names(run: ast.FunctionDef) -> set[str]:
    """Local names assigned from shapes."""
    names: set[str] = set()
    for node in ast.walk(run):
        if isinstance(node, ast.Assign) and _reads_size(node.value):
            names |= {name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)}
    return names


def _reads_size(node: ast.AST) -> bool:
    return any(isinstance(part, ast.Attribute) and part.attr in ("shape", "size", "numel", "strides", "stride")
               for part in ast.walk(node))


def _exact(test: ast.expr, sizes: set[str], kind: type[ast.cmpop]) -> bool:
    """Whether a test compares a size with an integer above 1 in the given way."""
    for node in ast.walk(test):
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], kind):
            sides = [node.left, node.comparators[0]]
            constant = any(isinstance(s, ast.Constant) and type(s.value) is int and s.value > 1 for s in sides)
            size = any((isinstance(s, ast.Name) and s.id in sizes) or _reads_size(s) for s in sides)
            if constant and size and not any(isinstance(s, ast.BinOp) for s in sides):
                return True
    return False
