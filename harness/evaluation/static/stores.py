"""Where numba kernel bodies write into arrays, and what they hand to each other."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from harness.evaluation.static.allowed import words
from harness.evaluation.static.candidate import Candidate

_UNARY = words(
    "absolute arccos arcsin arctan ceil cos cosh deg2rad exp exp2 expm1 fabs floor invert isfinite isinf isnan "
    "log log10 log1p log2 logical_not negative rad2deg reciprocal rint sign signbit sin sinh sqrt square tan tanh "
    "trunc", "numpy")
_BINARY = words(
    "add arctan2 bitwise_and bitwise_or bitwise_xor copysign divide equal floor_divide fmax fmin greater "
    "greater_equal heaviside hypot ldexp left_shift less less_equal logaddexp logical_and logical_or logical_xor "
    "maximum minimum mod multiply nextafter not_equal power remainder right_shift subtract true_divide round", "numpy")
_FILLING_METHODS = frozenset({"fill", "append"})


@dataclass(frozen=True, slots=True)
class Store:
    """One store into ``array`` (an expression), at ``index``; ``None`` stands for all of it."""

    array: ast.expr
    index: ast.expr | None


@dataclass(frozen=True, slots=True)
class Call:
    """A call of one of the file's kernel functions, with the expression given for each parameter."""

    function: ast.FunctionDef
    given: dict[str, ast.expr]

    @classmethod
    def of(cls, candidate: Candidate, node: ast.Call) -> Call | None:
        """What ``node`` calls, followed through constants; ``None`` where that is no kernel function of the file."""
        name, seen = node.func, set()
        while isinstance(name, ast.Name) and name.id in candidate.found.constants and name.id not in seen:
            seen.add(name.id)
            name = candidate.found.constants[name.id]
        function = candidate.found.kernels.get(name.id) if isinstance(name, ast.Name) else None
        if function is None:
            return None
        parameters = [argument.arg for argument in function.args.args]
        given = dict(zip(parameters, node.args, strict=False))
        given |= {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg is not None}
        return cls(function, given)


def stores_of(candidate: Candidate, node: ast.AST) -> Iterator[Store]:
    """The stores that ``node`` itself makes: subscripts, filling methods, and results of NumPy functions that are put
    into an array."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
        yield Store(node.value, node.slice)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        path = candidate.found.dotted(node.func)
        if path is None:
            if node.func.attr in _FILLING_METHODS:
                yield Store(node.func.value, None)
            return
        yield from (Store(keyword.value, None) for keyword in node.keywords if keyword.arg == "out")
        takes = 1 if path in _UNARY else 2 if path in _BINARY else None
        if takes is not None and len(node.args) == takes + 1:
            yield Store(node.args[takes], None)
