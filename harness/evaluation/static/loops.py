"""Loops that may not end."""

from __future__ import annotations

import ast

from harness.evaluation.source.steps import walk
from harness.evaluation.static.candidate import Candidate


def check_loops(candidate: Candidate) -> None:
    """Block `while` loops that cannot end; ask for a look at the others, whose bound is not visible."""
    for _, node, _ in candidate.scoped():
        if not isinstance(node, ast.While):
            continue
        leaves = _leaves(node)
        if isinstance(node.test, ast.Constant):
            if node.test.value and not leaves:
                candidate.report.add("unbounded_loop", "This loop never ends. Use `for ... in range(...)`.",
                                     node.lineno)
            elif node.test.value:
                candidate.report.add("loop_condition", "The end of this loop depends on a break. A `for` over a range "
                                     "shows its bound.", node.lineno)
        elif not leaves and not _names(node.test) & _changed(node):
            candidate.report.add("unbounded_loop", "Nothing in this loop changes its condition. Use `for ... in "
                                 "range(...)`.", node.lineno)
        else:
            candidate.report.add("loop_condition", "The bound of this `while` loop is not visible. A `for` over a "
                                 "range shows it.", node.lineno)


def _names(node: ast.AST) -> set[str]:
    return {name.id for name in walk(node) if isinstance(name, ast.Name)}


def _changed(loop: ast.While) -> set[str]:
    """Names assigned, stored into, or passed to a call inside the loop (a call may fill an array)."""
    changed: set[str] = set()
    for part in [*loop.body, loop.test]:
        for node in walk(part):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                changed.add(node.id)
            elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                changed |= _names(node.value)
            elif isinstance(node, ast.Call):
                changed |= {name for argument in node.args for name in _names(argument)}
    return changed


def _leaves(loop: ast.While) -> bool:
    """Whether a break of this loop, or a return or raise, stands inside it."""
    todo: list[tuple[ast.AST, bool]] = [(statement, True) for statement in loop.body]
    while todo:
        node, own = todo.pop()
        if isinstance(node, ast.Return | ast.Raise) or (own and isinstance(node, ast.Break)):
            return True
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            continue
        inner = own and not isinstance(node, ast.For | ast.While)
        todo.extend((child, inner) for child in ast.iter_child_nodes(node))
    return False
