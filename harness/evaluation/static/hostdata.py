"""Host code handles arrays by shape only: no arithmetic on them, no reading of their values."""

from __future__ import annotations

import ast

from harness.evaluation.source.steps import walk
from harness.evaluation.static.allowed import words
from harness.evaluation.static.arrays import Arrays, find_arrays
from harness.evaluation.static.candidate import Candidate

_READERS = frozenset({"abs", "all", "any", "bool", "divmod", "float", "int", "pow", "round", "slice", "str", "sum"})
_CONVERSIONS = words("float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool_ intp uintp bool "
                     "half float double int long bfloat16")
_ITERATORS = frozenset({"enumerate", "list", "max", "min", "reversed", "set", "sorted", "tuple", "zip"})


def check_host_data(candidate: Candidate) -> None:
    """Report arithmetic on arrays, reads of their elements and loops over them in `run` and host helpers."""
    arrays = find_arrays(candidate)
    for host, function in candidate.found.hosts.items():
        for node in walk(function):
            _check_node(candidate, arrays, host, node)


def _check_node(candidate: Candidate, arrays: Arrays, host: str, node: ast.AST) -> None:
    report = candidate.report
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and arrays.is_element(host, node):
        report.add("host_read", f"`{ast.unparse(node)}` reads a value on the host. Read it inside the kernel.",
                   node.lineno)
    elif any(arrays.may_hold(host, operand) for operand in _operands(node)):
        report.add("host_array_math", "Arithmetic on whole arrays in host code runs a library kernel. Do it in a "
                   "kernel function.", node.lineno)  # type: ignore[attr-defined]
    elif any(arrays.may_hold(host, test) for test in _tests(node)):
        report.add("host_read", "A condition on an array reads its values on the host. Ask for its shape, or for "
                   "`is None`.", node.lineno)  # type: ignore[attr-defined]
    elif (isinstance(node, ast.Starred) and isinstance(node.ctx, ast.Load) and arrays.is_array(host, node.value)) or (
            isinstance(node, ast.Assign) and arrays.is_array(host, node.value)
            and any(isinstance(target, ast.Tuple | ast.List) for target in node.targets)):
        report.add("host_read", "Unpacking an array reads its values on the host. Unpack its shape.", node.lineno)
    elif isinstance(node, ast.For | ast.comprehension) and arrays.is_array(host, node.iter):
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
    iterates = name in _ITERATORS and any(arrays.is_array(host, argument) for argument in node.args)
    if reads or iterates:
        candidate.report.add("host_read", f"`{ast.unparse(node.func)}(...)` of an array reads its values on the host. "
                             "Use its shape, or do it inside the kernel.", node.lineno)
    elif path.rpartition(".")[2] in _CONVERSIONS and path.partition(".")[0] in ("numpy", "torch") and any(
            arrays.may_hold(host, argument) for argument in node.args):
        candidate.report.add("library_compute", f"`{ast.unparse(node.func)}(...)` of an array converts it outside your "
                             "kernels. Convert in a kernel function.", node.lineno)
    elif _shapes_by_values(arrays, host, node, path):
        candidate.report.add("host_read", "A shape that comes out of an array reads its values on the host. Use its "
                             "shape.", node.lineno)
    elif isinstance(node.func, ast.Attribute) and node.func.attr == "type" and node.args:
        candidate.report.add("library_compute", "`.type(...)` converts outside your kernels. Convert in a kernel "
                             "function.", node.lineno)


def _shapes_by_values(arrays: Arrays, host: str, node: ast.Call, path: str) -> bool:
    """``np.empty(lengths)``, ``x.reshape(lengths)``: an array in the place of a size."""
    last = path.rpartition(".")[2] if path else node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if last in ("empty", "zeros", "empty_strided", "new_empty", "new_zeros", "ndarray", "Size", "Tensor"):
        sizes = node.args[:1] if last == "ndarray" else node.args
    elif last in ("reshape", "view", "expand", "unflatten", "narrow", "select") and not path:
        sizes = node.args
    else:
        return False
    named = [keyword.value for keyword in node.keywords if keyword.arg in ("shape", "size", "strides", "stride")]
    return any(arrays.may_hold(host, size) for size in [*sizes, *named])


def _tests(node: ast.AST) -> list[ast.expr]:
    """What a statement or expression takes for true or false."""
    if isinstance(node, ast.If | ast.While | ast.Assert | ast.IfExp):
        return [node.test]
    if isinstance(node, ast.BoolOp):
        return node.values[:-1]
    if isinstance(node, ast.comprehension):
        return []  # its conditions are expressions of their own
    return [node.operand] if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) else []


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
