"""How wide a kernel accumulates, as far as its text tells: narrowing an accumulator is a heavy change."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from harness.domain.vocabulary import Backend
from harness.evaluation.source.steps import walk

_BITS = {"float64": 64, "double": 64, "float32": 32, "float16": 16, "half": 16, "bfloat16": 16}
_LITERAL = 64  # a bare float literal; what that means depends on the backend
_NARROW_PREFIX = "float8"
_PRODUCERS = ("load", "load_tensor_descriptor", "dot", "dot_scaled", "sum", "fma", "dot_fma")


def narrowest(function: ast.FunctionDef, backend: Backend) -> int | None:
    """Bits of the narrowest accumulator whose start value names its width; ``None`` where no start value does.

    An accumulator is a name that is added to itself with data: ``acc += x[i]``, ``acc = acc + v``,
    ``acc = tl.dot(a, b, acc)``. A bare float literal is 64 bits wide in numba, 32 in Triton; integers do not count.
    """
    literal = 64 if backend is Backend.NUMBA else 32
    starts = _start_widths(function)
    widths = [min(width, literal) if width == _LITERAL else width
              for name in accumulators(function) for width in starts.get(name, ())]
    return min(widths, default=None)


def mentions_wide(function: ast.FunctionDef) -> bool:
    """Whether the body names float32 or float64 at all (a conversion before the arithmetic)."""
    return any((_bits(node) or 0) >= 32 for node in _body_nodes(function))


def dot_out_dtypes(function: ast.FunctionDef) -> list[int]:
    """Bits of every explicit ``out_dtype=`` of a dot product."""
    return [bits for node in _body_nodes(function) if isinstance(node, ast.keyword) and node.arg == "out_dtype"
            for bits in [_bits(node.value)] if bits is not None]


def _body_nodes(function: ast.FunctionDef) -> Iterator[ast.AST]:
    for statement in function.body:
        yield from walk(statement)


def accumulators(function: ast.FunctionDef) -> set[str]:
    """Names that are added to themselves with data."""
    data, starts = _data_names(function), _start_widths(function)
    found = set()
    for node in _body_nodes(function):
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add | ast.Sub):
            target, value = node.target, node.value
            name = target.id if isinstance(target, ast.Name) else _subscript_root(target)
            if name and (_is_data(value, data) or starts.get(name)):
                found.add(name)
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name in _names(node.value) and _is_data(node.value, data):
                found.add(name)
    return found


def _data_names(function: ast.FunctionDef) -> set[str]:
    """Names that hold loaded values, found by repeated passes over the assignments."""
    data: set[str] = set()
    while True:
        before = len(data)
        for node in _body_nodes(function):
            if isinstance(node, ast.Assign) and _is_data(node.value, data):
                data.update(target.id for target in node.targets if isinstance(target, ast.Name))
        if len(data) == before:
            return data


def _is_data(value: ast.expr, data: set[str]) -> bool:
    for node in walk(value):
        if isinstance(node, ast.Name) and node.id in data:
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _PRODUCERS:
            return True
        if isinstance(node, ast.Subscript) and not (isinstance(node.value, ast.Attribute)
                                                    and node.value.attr in ("shape", "strides")):
            return True
    return False


def _start_widths(function: ast.FunctionDef) -> dict[str, list[int]]:
    """The bits that each name's assigned values name, in order."""
    widths: dict[str, list[int]] = {}
    for node in _body_nodes(function):
        if isinstance(node, ast.Assign):
            targets: list[ast.expr] = node.targets
        elif isinstance(node, ast.AnnAssign):
            targets = [node.target]
        else:
            continue
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        if node.value is not None and names:
            found = list(_value_widths(node.value))
            for name in names:
                widths.setdefault(name, []).extend(found)
    return widths


def _names(node: ast.AST) -> set[str]:
    return {name.id for name in walk(node) if isinstance(name, ast.Name)}


def _value_widths(value: ast.expr) -> Iterator[int]:
    if isinstance(value, ast.UnaryOp):
        value = value.operand
    if isinstance(value, ast.Constant) and type(value.value) is float:
        yield _LITERAL
        return
    widths = [bits for node in walk(value) if (bits := _bits(node)) is not None]
    if widths and isinstance(value, ast.Call):
        yield min(widths)


def _bits(node: ast.AST) -> int | None:
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else None
    if name is None:
        return None
    return 8 if name.startswith(_NARROW_PREFIX) else _BITS.get(name)


def _subscript_root(node: ast.expr) -> str | None:
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None
