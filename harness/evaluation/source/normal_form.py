"""The normal form: what is left of a source once comments, docstrings, positions and local names are gone.

Two sources with equal normal forms are the same kernel for duplicates, vetoes and ``no_change``. Parameters keep their
names (they can be passed by name), module-level names and PARAMS too. The order of PARAMS' keys is immaterial where the
source only looks keys up or passes them on by name; a source that could walk through them is compared in their order.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Sequence

from harness.domain.digest import digest_bytes
from harness.evaluation.source.intake import parse
from harness.evaluation.source.scopes import (
    ComprehensionNode,
    FunctionNode,
    Scope,
    class_scope,
    comprehension_scope,
    function_scope,
    outside_parts,
)
from harness.evaluation.source.steps import analysed, bounded, remembered
from harness.evaluation.source.structure import PARAMS, assigned_name, is_docstring, names_bound_by
from harness.evaluation.source.syntax import all_nodes

_DOCUMENTED = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_SKIPPED_FIELDS = {"ctx", "kind", "type_comment", "type_ignores"}


def normal_digest(source: str) -> str:
    """``sha256:...`` of the normal form.

    Raises:
        SourceError: when the source cannot be parsed.
    """
    with bounded(), analysed():
        return digest_bytes("\n".join(statements_of(source)).encode("utf-8", "backslashreplace"))


@remembered
def statements_of(source: str) -> tuple[str, ...]:
    """``normal_statements`` of a text, kept.

    Raises:
        SourceError: when the source cannot be parsed.
    """
    return tuple(normal_statements(parse(source)))


def normal_statements(tree: ast.Module) -> list[str]:
    """The canonical text of every module-level statement, docstring apart; each is numbered for itself."""
    ordered = walks_through_params(tree)
    return [_Writer(ordered_params=ordered).text(statement, None) for statement in without_docstring(tree)]


def walks_through_params(tree: ast.Module) -> bool:
    """Whether PARAMS is used but for ``PARAMS[key]``, ``PARAMS.get(key)``, ``key in PARAMS`` and ``**PARAMS`` of a
    launch. Any other function that is called with ``**PARAMS`` can see their order."""
    known: set[int] = set()
    nodes = all_nodes(tree)
    kernels = {name for name, count in _plain_kernels(tree, nodes).items() if count == 1}
    for node in nodes:
        if isinstance(node, ast.Compare) and all(isinstance(op, ast.In | ast.NotIn) for op in node.ops):
            known.update(id(value) for value in node.comparators)
        elif isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and node.attr == "get"):
            known.add(id(node.value))
        elif isinstance(node, ast.Call):
            function = node.func.value if isinstance(node.func, ast.Subscript) else node.func
            if isinstance(function, ast.Name) and function.id in kernels:
                known.update(id(keyword.value) for keyword in node.keywords if keyword.arg is None)
    return any(isinstance(node, ast.Name) and node.id == PARAMS and isinstance(node.ctx, ast.Load)
               and id(node) not in known for node in nodes)


def _plain_kernels(tree: ast.Module, nodes: Sequence[ast.AST]) -> Counter[str]:
    """How often each name is bound that a decorated function has: those take their arguments by name, whatever the
    order, unless they gather them or a decorator has functions of its own that are handed them."""
    plain = {statement.name for statement in tree.body if isinstance(statement, ast.FunctionDef)
             and statement.decorator_list and statement.args.kwarg is None
             and not any(isinstance(node, ast.Lambda | ast.Dict) for decorator in statement.decorator_list
                         for node in ast.walk(decorator))}
    return Counter(name for node in nodes
                   for name in ((node.arg,) if isinstance(node, ast.arg) else names_bound_by(node)) if name in plain)


def without_docstring(node: _DOCUMENTED) -> list[ast.stmt]:
    """The statements of a body, its docstring apart."""
    return node.body[1:] if node.body and is_docstring(node.body[0]) else node.body


def canonical(node: ast.AST) -> str:
    """Canonical text of one module-level node, locals numbered in order of appearance."""
    return _Writer().text(node, None)


def canonical_body(function: ast.FunctionDef) -> list[str]:
    """Canonical text of each statement of a function's body, numbered through the whole body."""
    writer = _Writer()
    scope = function_scope(function, None)
    return [writer.text(statement, scope) for statement in without_docstring(function)]


class _Writer:
    def __init__(self, *, ordered_params: bool = False) -> None:
        self._ordered_params = ordered_params
        self._numbers: dict[tuple[int, str], str] = {}
        self._alive: list[Scope] = []  # keeps ids of scopes unique while this writer lives

    def text(self, node: ast.AST, scope: Scope | None) -> str:
        if isinstance(node, ast.Name):
            return f"Name({self._name(node.id, scope)})"
        if isinstance(node, ast.Constant):
            return f"Constant({_literal(node.value)})"
        if isinstance(node, FunctionNode | ast.ClassDef):
            return self._scoped(node, scope)
        if isinstance(node, ComprehensionNode):
            return self._comprehension(node, scope)
        if isinstance(node, ast.Global):
            return f"Global({','.join(node.names)})"
        if isinstance(node, ast.Nonlocal):
            names = [self._name(name, scope.parent if scope else None) for name in node.names]
            return f"Nonlocal({','.join(names)})"
        if isinstance(node, ast.alias):
            bound = self._name(node.asname, scope) if node.asname else ""
            return f"alias({node.name},{bound})"
        if scope is None and isinstance(node, ast.stmt) and assigned_name(node) == PARAMS and not self._ordered_params:
            node = _sorted_params(node)
        return self._fields(node, scope)

    def _fields(self, node: ast.AST, scope: Scope | None, skip: Sequence[str] = ()) -> str:
        parts = []
        for name, value in ast.iter_fields(node):
            if name in _SKIPPED_FIELDS or name in skip or value is None or value == []:
                continue
            parts.append(f"{name}={self._value(node, name, value, scope)}")
        return f"{type(node).__name__}({','.join(parts)})"

    def _value(self, node: ast.AST, name: str, value: object, scope: Scope | None) -> str:
        if isinstance(value, ast.AST):
            return self.text(value, scope)
        if isinstance(value, list):
            return self._list(value, scope)
        if name in ("name", "rest") and isinstance(value, str):  # except ... as, match patterns
            return self._name(value, scope)
        return _literal(value)

    def _list(self, values: Iterable[object], scope: Scope | None) -> str:
        items = [self.text(item, scope) if isinstance(item, ast.AST) else _literal(item) for item in values]
        return f"[{','.join(items)}]"

    def _scoped(self, node: FunctionNode | ast.ClassDef, scope: Scope | None) -> str:
        outside = self._list(outside_parts(node), scope)
        if isinstance(node, ast.Lambda):
            inner = self._keep(function_scope(node, scope))
            return f"Lambda({_arguments(node.args)},{outside},{self.text(node.body, inner)})"
        name = self._name(node.name, scope)
        inner = self._keep(class_scope(node, scope) if isinstance(node, ast.ClassDef) else function_scope(node, scope))
        head = "" if isinstance(node, ast.ClassDef) else _arguments(node.args)
        counts = len(node.decorator_list)
        types = self._list(getattr(node, "type_params", []), inner)
        body = self._list(without_docstring(node), inner)
        return f"{type(node).__name__}({name},{head},{counts},{outside},{types},{body})"

    def _comprehension(self, node: ComprehensionNode, scope: Scope | None) -> str:
        inner = self._keep(comprehension_scope(node, scope))
        parts = [self.text(node.generators[0].iter, scope)]
        for position, generator in enumerate(node.generators):
            parts.append(self._fields(generator, inner, skip=("iter",) if position == 0 else ()))
        values = [getattr(node, name) for name in ("key", "value", "elt") if hasattr(node, name)]
        return f"{type(node).__name__}({','.join(parts)},{self._list(values, inner)})"

    def _name(self, name: str, scope: Scope | None) -> str:
        owner = scope.owner(name) if scope is not None else None
        if owner is None or name in owner.kept:
            return name
        return self._numbers.setdefault((id(owner), name), f"%{len(self._numbers)}")

    def _keep(self, scope: Scope) -> Scope:
        self._alive.append(scope)
        return scope


def _arguments(arguments: ast.arguments) -> str:
    """Parameter names and kinds, and which of them have defaults and annotations (their values are outside parts)."""
    parts = [f"{kind}:{argument.arg}:{int(argument.annotation is not None)}"
             for kind, group in (("p", arguments.posonlyargs), ("a", arguments.args), ("k", arguments.kwonlyargs))
             for argument in group]
    for kind, starred in (("*", arguments.vararg), ("**", arguments.kwarg)):
        if starred is not None:
            parts.append(f"{kind}:{starred.arg}:{int(starred.annotation is not None)}")
    given = "".join(str(int(default is not None)) for default in arguments.kw_defaults)
    return f"({';'.join(parts)}|{len(arguments.defaults)}|{given})"


def _sorted_params(statement: ast.stmt) -> ast.stmt:
    value = statement.value  # type: ignore[attr-defined]
    if not isinstance(value, ast.Dict):
        return statement
    keys = [key.value if isinstance(key, ast.Constant) else None for key in value.keys]
    if not all(isinstance(key, str) for key in keys) or len(set(keys)) != len(keys):
        return statement
    pairs = sorted(zip(value.keys, value.values, strict=True), key=lambda pair: pair[0].value)  # type: ignore[union-attr]
    ordered = ast.Dict(keys=[key for key, _ in pairs], values=[item for _, item in pairs])
    target = ast.Name(id=PARAMS, ctx=ast.Store())
    if isinstance(statement, ast.AnnAssign):
        return ast.AnnAssign(target=target, annotation=statement.annotation, value=ordered, simple=statement.simple)
    return ast.Assign(targets=[target], value=ordered)


def _literal(value: object) -> str:
    """A constant's text; integers in hexadecimal because decimal text of huge ones is refused by Python."""
    if isinstance(value, int) and not isinstance(value, bool):
        return hex(value)
    return repr(value)
