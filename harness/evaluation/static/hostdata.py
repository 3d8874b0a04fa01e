"""Host code handles arrays by shape only: no arithmetic on them, no reading of their values."""

from __future__ import annotations

import ast

from harness.evaluation.static.arrays import Arrays, find_arrays
from harness.evaluation.static.candidate import Candidate

_READERS = frozenset({"abs", "all", "any", "bool", "divmod", "float", "int", "pow", "round", "slice", "str", "sum"})
_ITERATORS = frozenset({"enumerate", "list", "max", "min", "reversed", "set", "sorted", "tuple", "zip"})


def check_host_data(candidate: Candidate) -> None:
    """Report arithmetic on arrays, reads of their elements and loops over them in `run` and host helpers."""
    arrays = find_arrays(candidate)
    for host, function in candidate.found.hosts.items():
        for node in ast.walk(function):
            _check_node(candidate, arrays, host, node)


def _check_node(candidate: Candidate, arrays: Arrays, host: str, node: ast.AST) -> None:
    report = candidate.report
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and arrays.is_element(host, node):
        report.add("host_read", f"`{ast.unparse(node)}` reads a value on the host. Read it inside the kernel.",
                   node.lineno)
    elif any(arrays.may_hold(host, operand) for operand in _operands(node)):
        report.add("host_array_math", "Arithmetic on whole arrays in host code runs a library kernel. Do it in a "
                   "kernel function.", node.lineno)  # type: ignore[attr-defined]
    elif isinstance(node, ast.For | ast.comprehension) and _is_array_itself(arrays, host, node.iter):
        report.add("host_read", "A loop over an array reads its values on the host. Loop over range(...) inside the "
                                "kernel.", node.iter.lineno)
    elif isinstance(node, ast.FormattedValue) and arrays.may_hold(host, node.value):
        report.add("host_read", "Formatting an array reads its values on the host. Format its shape.", node.lineno)
    elif isinstance(node, ast.Call):
        _check_call(candidate, arrays, host, node)


def _check_call(candidate: Candidate, arrays: Arrays, host: str, node: ast.Call) -> None:
    path = candidate.found.dotted(node.func) or ""
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    reads = (name in _READERS or path.startswith("math.")) and any(
        arrays.may_hold(host, argument) for argument in node.args)
    iterates = name in _ITERATORS and any(_is_array_itself(arrays, host, argument) for argument in node.args)
    if reads or iterates:
        candidate.report.add("host_read", f"`{ast.unparse(node.func)}(...)` of an array reads its values on the host. "
                             "Use its shape, or do it inside the kernel.", node.lineno)
    elif isinstance(node.func, ast.Attribute) and node.func.attr == "type" and node.args:
        candidate.report.add("library_compute", "`.type(...)` converts outside your kernels. Convert in a kernel "
                             "function.", node.lineno)


def _is_array_itself(arrays: Arrays, host: str, node: ast.expr) -> bool:
    """Whether iterating over an expression would iterate over an array, as far as its form tells."""
    if isinstance(node, ast.Name):
        return host == "run" and node.id in arrays.ranks
    return isinstance(node, ast.Subscript | ast.Attribute) and arrays.may_hold(host, node)


def _operands(node: ast.AST) -> list[ast.expr]:
    """What an arithmetic node computes with; identity tests compute nothing."""
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
        return [node.operand]
    if isinstance(node, ast.AugAssign):
        return [node.target, node.value]
    if isinstance(node, ast.Compare) and not all(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
        return [node.left, *node.comparators]
    return []
