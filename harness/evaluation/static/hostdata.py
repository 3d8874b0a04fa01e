"""Host code handles arrays by shape only: no arithmetic on them, no reading of their values."""

from __future__ import annotations

import ast

from harness.evaluation.static.candidate import Candidate

_ALLOCATIONS = ("empty", "empty_like", "zeros", "zeros_like", "empty_strided", "new_empty", "new_zeros")
_VIEWS = ("view", "reshape", "unsqueeze", "squeeze", "transpose", "permute", "flatten", "expand", "narrow", "select",
          "contiguous", "t", "movedim", "view_as", "expand_as", "unflatten")
_READERS = frozenset({"abs", "all", "any", "bool", "divmod", "enumerate", "float", "int", "list", "max", "min", "pow",
                      "reversed", "round", "set", "sorted", "str", "sum", "tuple", "zip"})


def check_host_data(candidate: Candidate) -> None:
    """Report arithmetic on arrays, element reads and loops over arrays in `run` and in functions nested in it."""
    run = candidate.found.run
    if run is None:
        return
    ranks = {argument.name: len(argument.dims) for argument in candidate.spec.arguments}
    arrays = _array_names(run, set(ranks))
    for node in ast.walk(run):
        _check_node(candidate, node, arrays, ranks)


def _array_names(run: ast.FunctionDef, names: set[str]) -> set[str]:
    """Arguments and everything assigned from them by views, or allocated."""
    while True:
        before = len(names)
        for node in ast.walk(run):
            if isinstance(node, ast.Assign) and _is_array(node.value, names, {}):
                names = names | {target.id for target in node.targets if isinstance(target, ast.Name)}
        if len(names) == before:
            return names


def _is_array(node: ast.expr, names: set[str], ranks: dict[str, int]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in names
    if isinstance(node, ast.Subscript):
        return _is_array(node.value, names, ranks) and not _is_element(node, ranks)
    if isinstance(node, ast.Attribute):
        return node.attr in ("T", "mT") and _is_array(node.value, names, ranks)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in _ALLOCATIONS or (node.func.attr in _VIEWS and _is_array(node.func.value, names, ranks))
    return False


def _is_element(node: ast.Subscript, ranks: dict[str, int]) -> bool:
    """``x[i, j]`` with as many plain indices as the argument has axes."""
    if not isinstance(node.value, ast.Name) or node.value.id not in ranks:
        return False
    indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    plain = all(not isinstance(index, ast.Slice | ast.Starred)
                and not (isinstance(index, ast.Constant) and index.value in (None, Ellipsis)) for index in indices)
    return plain and len(indices) == ranks[node.value.id]


def _check_node(candidate: Candidate, node: ast.AST, arrays: set[str], ranks: dict[str, int]) -> None:
    def is_array(part: ast.expr) -> bool:
        return _is_array(part, arrays, ranks)

    report = candidate.report
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and _is_element(node, ranks):
        report.add("host_read", f"`{ast.unparse(node)}` reads a value on the host. Read it inside the kernel.",
                   node.lineno)
    elif any(is_array(operand) for operand in _operands(node)):
        report.add("host_array_math", "Arithmetic on whole arrays in host code runs a library kernel. Do it in a "
                   "kernel function.", node.lineno)  # type: ignore[attr-defined]
    elif isinstance(node, ast.For | ast.comprehension) and is_array(node.iter):
        report.add("host_read", "A loop over an array reads its values on the host. Loop over range(...) inside the "
                                "kernel.", node.iter.lineno)
    elif (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _READERS
          and any(is_array(argument) for argument in node.args)):
        report.add("host_read", f"`{node.func.id}(...)` of an array reads its values on the host. Use its shape, or do "
                                "it inside the kernel.", node.lineno)


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
