"""Branches on exact sizes: legal tuning when a general path remains, a refusal of other shapes when not."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from harness.evaluation.source.scopes import parameter_names
from harness.evaluation.source.steps import step, walk
from harness.evaluation.static.allowed import HOST_BUILTINS
from harness.evaluation.static.candidate import Candidate
from harness.evaluation.static.launches import launch_calls

_SIZES = ("shape", "size", "numel", "strides", "stride")


def check_shapes(candidate: Candidate) -> None:
    """Note branches on exact sizes that leave a general path; ask for a look where none is left, or where other sizes
    are refused. Kernel bodies count too: there a parameter that is compared with a number is taken for a size."""
    for function in candidate.found.hosts.values():
        sizes = _size_names(function)
        _check_body(candidate, function.body, [], sizes)
        for node in walk(function):
            if isinstance(node, ast.IfExp) and _exact(node.test, sizes, ast.Eq, ast.NotEq, ast.In, ast.NotIn):
                _note(candidate, node)
    for kernel in candidate.found.kernels.values():
        sizes = set(parameter_names(kernel.args)) | _size_names(kernel)
        for node in walk(kernel):
            if isinstance(node, ast.If | ast.IfExp) and _exact(node.test, sizes, ast.Eq, ast.NotEq, ast.In, ast.NotIn):
                _note(candidate, node)


def _check_body(candidate: Candidate, body: Sequence[ast.stmt], after: Sequence[ast.stmt], sizes: set[str]) -> None:
    """``after`` is what runs behind ``body``."""
    for position, statement in enumerate(body):
        if isinstance(statement, ast.Assert) and _exact(statement.test, sizes, ast.Eq, ast.In):
            _refuses(candidate, statement)
        blocks = [block for name in ("body", "orelse") if isinstance(block := getattr(statement, name, None), list)]
        if not any(blocks):
            continue
        rest = [*body[position + 1:], *after]
        step(len(rest))
        if isinstance(statement, ast.If):
            _check_if(candidate, statement, rest, sizes)
        for inner in blocks:
            _check_body(candidate, inner, rest, sizes)


def _check_if(candidate: Candidate, node: ast.If, rest: Sequence[ast.stmt], sizes: set[str]) -> None:
    refuses = bool(node.body) and isinstance(node.body[0], ast.Raise | ast.Return)
    if _exact(node.test, sizes, ast.NotEq, ast.NotIn):
        if refuses:
            _refuses(candidate, node)
        elif _launches(candidate, node.body):
            _note(candidate, node)
    elif _exact(node.test, sizes, ast.Eq, ast.In):
        special = _launches(candidate, node.body)
        if special and not _launches(candidate, [*node.orelse, *rest]):
            candidate.report.add("shape_only", "Only this exact size is computed: no launch is left for the others. "
                                 "Every size of the operator must work.", node.lineno)
        else:
            _note(candidate, node)


def _launches(candidate: Candidate, body: Sequence[ast.stmt]) -> bool:
    """Whether statements launch a kernel function, or call something of the file that may."""
    for statement in body:
        if next(iter(launch_calls(candidate, statement)), None) is not None:
            return True
        for node in walk(statement):
            if isinstance(node, ast.Call) and (isinstance(node.func, ast.Subscript) or (
                    isinstance(node.func, ast.Name) and node.func.id not in HOST_BUILTINS
                    and node.func.id not in candidate.found.imports)):
                return True
    return False


def _note(candidate: Candidate, node: ast.If | ast.IfExp) -> None:
    candidate.report.add("shape_branch", "This branch is for one exact size; other sizes take the other path.",
                         node.lineno)


def _refuses(candidate: Candidate, node: ast.stmt) -> None:
    candidate.report.add("shape_refused", "Only one exact size is accepted here; every size of the operator must work.",
                         node.lineno)


def _size_names(function: ast.FunctionDef) -> set[str]:
    """Local names assigned from shapes, or from other such names."""
    names: set[str] = set()
    while True:
        before = len(names)
        for node in walk(function):
            if isinstance(node, ast.Assign | ast.NamedExpr) and (
                    _reads_size(node.value) or (isinstance(node.value, ast.Name) and node.value.id in names)):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names |= {name.id for target in targets for name in walk(target) if isinstance(name, ast.Name)}
        if len(names) == before:
            return names


def _reads_size(node: ast.AST) -> bool:
    return any(isinstance(part, ast.Attribute) and part.attr in _SIZES for part in walk(node))


def _exact(test: ast.expr, sizes: set[str], *kinds: type[ast.cmpop]) -> bool:
    """Whether a test compares a size, or several, with integers above 1 in one of the given ways."""
    for node in walk(test):
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], kinds):
            sides = [node.left, node.comparators[0]]
            constant = any(_is_exact_size(side) for side in sides)
            size = any(_is_size(side, sizes) for side in sides)
            if constant and size and not any(isinstance(side, ast.BinOp) for side in sides):
                return True
    return False


def _is_exact_size(node: ast.expr) -> bool:
    """An integer above 1, or a literal collection that contains one."""
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return any(_is_exact_size(item) for item in node.elts)
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value > 1


def _is_size(node: ast.expr, sizes: set[str]) -> bool:
    if isinstance(node, ast.Tuple | ast.List):
        return any(_is_size(item, sizes) for item in node.elts)
    return (isinstance(node, ast.Name) and node.id in sizes) or _reads_size(node)
