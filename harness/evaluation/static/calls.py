"""What host code calls has a name that says what it is; annotations call and compute nothing.

The analysis of arrays follows calls by name. A lambda taken out of a container, or a function under a second name,
would carry arrays past it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from harness.domain.vocabulary import Backend
from harness.evaluation.source.scopes import Scope, own_arguments
from harness.evaluation.source.steps import walk
from harness.evaluation.static.arrays import find_arrays
from harness.evaluation.static.candidate import Candidate
from harness.evaluation.static.launch_form import kernel_aliases

_IN_ANNOTATIONS = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Tuple, ast.List, ast.BitOr,
                   ast.expr_context)


def check_calls(candidate: Candidate) -> None:
    """Report callees that are no plain names, functions that are handed around, and annotations that are code."""
    for note in _annotations(candidate.found.tree):
        if any(not isinstance(part, _IN_ANNOTATIONS) and not _is_union(part) for part in walk(note)):
            candidate.report.add("annotation", f"The annotation `{ast.unparse(note)[:60]}` is code. Write names, "
                                 "attributes and subscripts only.", note.lineno)
    for context, node, scope in candidate.scoped():
        if context == "kernel":
            continue
        if isinstance(node, ast.Call) and not _is_plain(candidate, node.func, scope):
            candidate.report.add("callee", f"`{ast.unparse(node.func)[:60]}` is called, which is not the name of an "
                                 "allowed function or of one in this file. Call functions by their names.",
                                 node.lineno)
        elif isinstance(node, ast.Lambda) or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
                                              and _is_own_function(candidate, node, scope)):
            _check_handed_over(candidate, context, node)


def _annotations(tree: ast.Module) -> Iterator[ast.expr]:
    for node in walk(tree):
        if isinstance(node, ast.AnnAssign | ast.arg) and node.annotation is not None:
            yield node.annotation
        elif isinstance(node, ast.FunctionDef) and node.returns is not None:
            yield node.returns


def _is_union(node: ast.AST) -> bool:
    """``int | None``."""
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr)


def _is_plain(candidate: Candidate, callee: ast.expr, scope: Scope | None) -> bool:
    found = candidate.found
    if isinstance(callee, ast.Attribute):
        return True  # the allowlist of paths and methods judges it
    if isinstance(callee, ast.Subscript):
        return found.backend is Backend.TRITON and isinstance(callee.value, ast.Name)  # judged as a launch
    if not isinstance(callee, ast.Name):
        return False
    owner = scope.owner(callee.id) if scope is not None else None
    if owner is None:
        value = found.constants.get(callee.id)
        return value is None or found.dotted(value) is not None  # other names are judged as names
    if owner.comprehension or owner.node is None or callee.id in {a.arg for a in own_arguments(owner.node.args)}:
        return False
    host = _outermost(candidate, callee)
    if host is not None and callee.id in kernel_aliases(candidate, host):
        return all(_names_kernels(candidate, host, value) for value in _values(owner.node, callee.id))
    return all(isinstance(value, ast.Lambda | ast.FunctionDef) for value in _values(owner.node, callee.id))


def _names_kernels(candidate: Candidate, host: ast.FunctionDef, value: ast.AST | None) -> bool:
    """A kernel function's name, another name for one, or a choice of these."""
    if isinstance(value, ast.IfExp):
        return _names_kernels(candidate, host, value.body) and _names_kernels(candidate, host, value.orelse)
    return isinstance(value, ast.Name) and value.id in kernel_aliases(candidate, host)


def _values(function: ast.AST, name: str) -> Iterator[ast.AST | None]:
    """What a name is bound to in a function; ``None`` where that is no plain assignment or definition."""
    plain: set[int] = set()
    for node in walk(function):
        if isinstance(node, ast.FunctionDef) and node.name == name and node is not function:
            yield node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name) and target.id == name:
                    plain.add(id(target))
                    yield node.value
        elif isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load) and (
                id(node) not in plain):
            yield None


def _outermost(candidate: Candidate, node: ast.AST) -> ast.FunctionDef | None:
    above = candidate.parent(node)
    while above is not None and candidate.parent(above) is not candidate.found.tree:
        above = candidate.parent(above)
    return above if isinstance(above, ast.FunctionDef) else None


def _is_own_function(candidate: Candidate, node: ast.Name, scope: Scope | None) -> bool:
    owner = scope.owner(node.id) if scope is not None else None
    if owner is None:
        return node.id in candidate.found.hosts
    return (owner.node is not None and node.id in _defined(candidate, owner.node)
            and node.id not in {a.arg for a in own_arguments(owner.node.args)})


def _defined(candidate: Candidate, function: ast.AST) -> set[str]:
    """Names that are bound to a function or lambda somewhere in ``function``; collected once."""
    if id(function) not in candidate.defined:
        names = set()
        for node in walk(function):
            if isinstance(node, ast.FunctionDef) and node is not function:
                names.add(node.name)
            elif isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Lambda):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names |= {target.id for target in targets if isinstance(target, ast.Name)}
        candidate.defined[id(function)] = names
    return candidate.defined[id(function)]


def _check_handed_over(candidate: Candidate, context: str, node: ast.Lambda | ast.Name) -> None:
    """A function may be called, named once (a lambda), be the grid of a launch, the allocator, or a sort key."""
    above, child = candidate.parent(node), node
    while isinstance(above, ast.IfExp) and child is not above.test:
        above, child = candidate.parent(above), above  # type: ignore[assignment]
    if isinstance(above, ast.Call) and (above.func is node or candidate.found.dotted(above.func)
                                        == "triton.set_allocator"):
        return
    if isinstance(node, ast.Lambda) and isinstance(above, ast.Assign) and child is node and all(
            isinstance(target, ast.Name) for target in above.targets):
        return
    if isinstance(above, ast.Subscript) and above.slice is child and candidate.found.backend is Backend.TRITON:
        return
    if isinstance(above, ast.Dict) and context == "module":
        return  # heuristics
    if isinstance(above, ast.keyword) and above.arg == "key" and not _over_arrays(candidate, above):
        return
    candidate.report.add("callee", "A function is handed around as a value. Call it by its name, or write it where it "
                                   "is used.", node.lineno)


def _over_arrays(candidate: Candidate, keyword: ast.keyword) -> bool:
    call, host = candidate.parent(keyword), _outermost(candidate, keyword)
    return host is None or not isinstance(call, ast.Call) or any(
        find_arrays(candidate).may_hold(host.name, argument) for argument in call.args)
