"""The PARAMS dictionary: reading it as data and holding it against the operator's declaration."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.domain.errors import SourceError
from harness.domain.vocabulary import Backend
from harness.evaluation.source.intake import parse
from harness.evaluation.source.steps import walk
from harness.evaluation.source.structure import PARAMS, assigned_name, names_bound_by
from harness.operators.base import OperatorSpec, Tunable

Scalar = int | str | bool
MAX_WORD = 100
"""Characters of a key or of a text value."""


@dataclass(frozen=True, slots=True)
class ParamProblem:
    """Why one value is not what the operator declares. ``code``: ``undeclared``, ``kind``, ``range``, ``choice``,
    ``power_of_two``, ``buckets``."""

    key: str
    code: str
    text: str
    line: int | None = None


def read_params(source: str | ast.Module) -> dict[str, Any]:
    """PARAMS as a Python dict; ``{}`` where a source has none.

    Raises:
        SourceError: ``params_not_literal`` unless it is assigned exactly once, as a literal dict of integers, strings,
            booleans or tables of these; ``params_rebound`` where it is assigned, deleted or augmented again.
    """
    tree = parse(source) if isinstance(source, str) else source
    literal: ast.expr | None = None
    target: ast.expr | None = None
    for statement in tree.body:
        if assigned_name(statement) == PARAMS and target is None:
            literal = statement.value  # type: ignore[attr-defined]
            target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target  # type: ignore[attr-defined]
    for node in walk(tree):
        if node is not target and _touches_params(node):
            line = getattr(node, "lineno", None)
            raise SourceError(f"Line {line} assigns {PARAMS} a second time or changes it. Write one literal dict.",
                              line=line, code="params_rebound")
    return {} if literal is None else _read_dict(literal, nested=True)


def key_lines(source: str | ast.Module) -> dict[str, int]:
    """The line of every PARAMS key."""
    tree = parse(source) if isinstance(source, str) else source
    for statement in tree.body:
        if assigned_name(statement) == PARAMS and isinstance(statement.value, ast.Dict):  # type: ignore[attr-defined]
            keys = statement.value.keys  # type: ignore[attr-defined]
            return {key.value: key.lineno for key in keys
                    if isinstance(key, ast.Constant) and isinstance(key.value, str)}
    return {}


def problems(params: Mapping[str, Any], spec: OperatorSpec, backend: Backend,
             lines: Mapping[str, int] | None = None) -> tuple[ParamProblem, ...]:
    """Everything in ``params`` that the operator does not declare for ``backend``, in key order."""
    found = []
    for key, value in params.items():
        problem = value_problem(key, value, spec, backend)
        if problem is not None:
            found.append(dataclasses.replace(problem, line=(lines or {}).get(key)))
    return tuple(found)


def value_problem(key: str, value: Any, spec: OperatorSpec, backend: Backend) -> ParamProblem | None:
    """What is wrong with one key's value (a scalar, or a table with every declared bucket); ``None`` if nothing."""
    tunable = spec.tunable(key, backend)
    if tunable is None:
        declared = ", ".join(t.key for t in spec.tunables if backend in t.backends) or "none"
        return ParamProblem(key, "undeclared", f"{key} is not declared by {spec.name} for {backend}. "
                                               f"Declared keys: {declared}.")
    if not isinstance(value, dict):
        return scalar_problem(tunable, value)
    if spec.buckets is None:
        return ParamProblem(key, "buckets", f"{key} is a table, but {spec.name} declares no shape buckets. "
                                            "Use one value.")
    names = [name for name, _ in spec.buckets.bounds]
    if sorted(value) != sorted(names):
        return ParamProblem(key, "buckets", f"{key}: the table has {', '.join(map(str, value)) or 'no buckets'}; "
                                            f"it needs exactly {', '.join(names)}.")
    return next((p for item in value.values() if (p := scalar_problem(tunable, item)) is not None), None)


def scalar_problem(tunable: Tunable, value: Any) -> ParamProblem | None:
    """What is wrong with one value of a tunable; types count (``True`` is not 1)."""
    key = tunable.key
    if tunable.choices:
        if any(type(value) is type(choice) and value == choice for choice in tunable.choices):
            return None
        return ParamProblem(key, "choice", f"{key} is {value!r}; allowed are "
                                           f"{', '.join(map(repr, tunable.choices))}.")
    if isinstance(value, bool) or not isinstance(value, int):
        return ParamProblem(key, "kind", f"{key} is {value!r}; it must be an integer "
                                         f"from {tunable.low} to {tunable.high}.")
    if not tunable.low <= value <= tunable.high:
        return ParamProblem(key, "range", f"{key} is {value}, outside {tunable.low} to {tunable.high}.")
    if tunable.power_of_two and value & (value - 1):
        return ParamProblem(key, "power_of_two", f"{key} is {value}; it must be a power of two.")
    return None


def same_value(left: Any, right: Any) -> bool:
    """Equality in which ``True`` and ``1`` differ."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same_value(left[key], right[key]) for key in left)
    return type(left) is type(right) and left == right


def narrowed(spec: OperatorSpec, adjustable: Mapping[str, tuple[int, int]]) -> OperatorSpec:
    """The operator with its integer ranges narrowed as a goal asks; keys that a goal does not name keep theirs."""
    def narrow(tunable: Tunable) -> Tunable:
        if tunable.key not in adjustable or (tunable.choices and not all(type(c) is int for c in tunable.choices)):
            return tunable
        low, high = adjustable[tunable.key]
        if tunable.choices:
            kept = tuple(choice for choice in tunable.choices if low <= choice <= high)  # type: ignore[operator]
            return dataclasses.replace(tunable, choices=kept or (low,))
        return dataclasses.replace(tunable, low=max(low, tunable.low), high=min(high, tunable.high))

    return dataclasses.replace(spec, tunables=tuple(narrow(tunable) for tunable in spec.tunables))


def _touches_params(node: ast.AST) -> bool:
    """Whether a node binds PARAMS, stores into it or into one of its tables, or passes it to a mutating method."""
    if PARAMS in names_bound_by(node):
        return True
    if isinstance(node, ast.arg):
        return node.arg == PARAMS
    if isinstance(node, ast.Global | ast.Nonlocal):
        return PARAMS in node.names
    if isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
        return _root(node) == PARAMS
    return (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _root(node.func) == PARAMS
            and node.func.attr not in ("get", "items", "keys", "values"))


def _root(node: ast.expr) -> str | None:
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _read_dict(node: ast.expr, *, nested: bool) -> dict[str, Any]:
    if not isinstance(node, ast.Dict):
        raise _not_literal(node, "is not a literal dict")
    values: dict[str, Any] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            raise _not_literal(key or value, "has a key that is not a plain string")
        _check_word(key, key.value)
        if key.value in values:
            raise _not_literal(key, f"names the key {key.value!r} twice")
        if isinstance(value, ast.Dict) and nested:
            values[key.value] = _read_dict(value, nested=False)
        else:
            values[key.value] = _read_scalar(key.value, value)
    return values


def _read_scalar(key: str, node: ast.expr) -> Scalar:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | str):
        if isinstance(node.value, str):
            _check_word(node, node.value)
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        number = node.operand.value
        if type(number) is int:
            return -number
    raise _not_literal(node, f"gives {key!r} a value that is not a literal integer, string or boolean")


def _check_word(node: ast.AST, word: str) -> None:
    """Keys and text values stand in verdicts, diffs and terminals: one short printable word or phrase each."""
    if not word.isprintable() or len(word) > MAX_WORD:
        raise _not_literal(node, f"has a key or value that is not a printable text of at most {MAX_WORD} characters")


def _not_literal(node: ast.AST, what: str) -> SourceError:
    line = getattr(node, "lineno", None)
    return SourceError(f"Line {line}: {PARAMS} {what}. Write one literal dict, for instance "
                       '{"BLOCK": 1024, "num_warps": 8}.', line=line, code="params_not_literal")
