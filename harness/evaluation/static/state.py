"""State between calls: nothing outside the current call of `run` may be changed."""

from __future__ import annotations

import ast

from harness.evaluation.source.scopes import Scope
from harness.evaluation.source.steps import walk
from harness.evaluation.static.allowed import MUTATING_METHODS
from harness.evaluation.static.candidate import Candidate
from harness.evaluation.static.findings import Report

_FRESH = ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp
_FRESH_CALLS = ("list", "dict", "set", "sorted")


def check_state(candidate: Candidate) -> None:
    """Report stores through attributes, and changes to containers that this call did not create."""
    for context, node, scope in candidate.scoped():
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            candidate.report.add("attribute_store", f"Assigning to `.{node.attr}` changes an object that outlives the "
                                 "call. Use local names.", node.lineno)
        elif context == "kernel":
            continue
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
            _check_store(candidate.report, candidate, node, scope)
        elif (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
              and node.func.attr in MUTATING_METHODS and not _is_fresh(candidate, node.func.value, scope)):
            candidate.report.add("kept_state", f"`.{node.func.attr}` changes a container that was not created in this "
                                 "call. Create the list or dict inside the function.", node.lineno)


def _check_store(report: Report, candidate: Candidate, node: ast.Subscript, scope: Scope | None) -> None:
    if _is_fresh(candidate, node.value, scope):
        return
    root = node.value
    while isinstance(root, ast.Subscript | ast.Attribute):
        root = root.value
    name = root.id if isinstance(root, ast.Name) else "this object"
    if scope is not None and isinstance(root, ast.Name) and scope.owner(name) is not None:
        report.add("host_array_math", f"`{name}[...] = ...` writes an array or a foreign container in host code. "
                                      "Write arrays in a kernel function.", node.lineno)
    else:
        report.add("kept_state", f"`{name}[...] = ...` changes a module-level object, which keeps state between "
                                 "calls. Use local names.", node.lineno)


def _is_fresh(candidate: Candidate, node: ast.expr, scope: Scope | None) -> bool:
    """Whether a name is bound, in its own function and only there, to containers created on the spot."""
    owner = scope.owner(node.id) if isinstance(node, ast.Name) and scope is not None else None
    if owner is None or not isinstance(node, ast.Name) or node.id in owner.kept or owner.comprehension:
        return False
    function: ast.AST | None = candidate.parent(node)
    while function is not None and not isinstance(function, ast.FunctionDef):
        function = candidate.parent(function)
    if function is None:
        return False
    bindings = [n for n in walk(function) if isinstance(n, ast.Name) and n.id == node.id
                and isinstance(n.ctx, ast.Store)]
    return bool(bindings) and all(_bound_to_fresh(candidate.parent(binding)) for binding in bindings)


def _bound_to_fresh(statement: ast.AST | None) -> bool:
    if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
        return False
    value = statement.value
    return isinstance(value, _FRESH) or (isinstance(value, ast.Call) and isinstance(value.func, ast.Name)
                                         and value.func.id in _FRESH_CALLS)
