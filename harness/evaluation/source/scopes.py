"""Which names a function binds: the part of Python's scoping that renaming locals needs."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from harness.evaluation.source.steps import step
from harness.evaluation.source.structure import names_bound_by
from harness.evaluation.source.syntax import children

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
ComprehensionNode = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


@dataclass
class Scope:
    """Names bound in one scope. ``kept`` are bound here but never renamed (parameters, class attributes, plain
    imports); ``outer`` are declared nonlocal. ``visible`` is False for class bodies. ``node`` makes a function's."""

    bound: set[str] = field(default_factory=set)
    kept: set[str] = field(default_factory=set)
    globals: set[str] = field(default_factory=set)
    outer: set[str] = field(default_factory=set)
    parent: Scope | None = None
    visible: bool = True
    comprehension: bool = False
    node: FunctionNode | None = None

    def owner(self, name: str) -> Scope | None:
        """The scope whose variable ``name`` means here; ``None`` for module-level names and builtins."""
        scope: Scope | None = self
        first = True
        while scope is not None:
            if first or scope.visible:
                if name in scope.globals:
                    return None
                if name in scope.bound and name not in scope.outer:
                    return scope
            first = False
            scope = scope.parent
        return None


def function_scope(node: FunctionNode, parent: Scope | None) -> Scope:
    """The scope of a function's or lambda's body."""
    scope = Scope(parent=parent, node=node)
    scope.kept = set(parameter_names(node.args))
    body = [node.body] if isinstance(node, ast.Lambda) else node.body
    _collect(body, scope)
    scope.bound |= scope.kept
    return scope


def class_scope(node: ast.ClassDef, parent: Scope | None) -> Scope:
    """The scope of a class body: its names are attributes and stay."""
    scope = Scope(parent=parent, visible=False)
    _collect(node.body, scope)
    scope.kept = set(scope.bound)
    return scope


def comprehension_scope(node: ComprehensionNode, parent: Scope | None) -> Scope:
    """The scope of a comprehension: its targets."""
    scope = Scope(parent=parent, comprehension=True)
    for generator in node.generators:
        for name in ast.walk(generator.target):
            if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store):
                scope.bound.add(name.id)
    return scope


def parameter_names(arguments: ast.arguments) -> Iterator[str]:
    """All parameters in order, starred ones included."""
    for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
        yield argument.arg
    for starred in (arguments.vararg, arguments.kwarg):
        if starred is not None:
            yield starred.arg


def scoped_nodes(function: FunctionNode) -> Iterator[tuple[ast.AST, Scope]]:
    """Every node of a function's body with the scope it stands in, inner functions and comprehensions included."""
    inner = function_scope(function, None)
    body = [function.body] if isinstance(function, ast.Lambda) else function.body
    yield from ((node, scope) for node, scope in nodes_below(body, inner) if scope is not None)


def nodes_below(nodes: Iterable[ast.AST], scope: Scope | None) -> Iterator[tuple[ast.AST, Scope | None]]:
    """``nodes``, which stand in ``scope`` (``None``: module level), and every node below with its own scope."""
    todo: list[tuple[ast.AST, Scope | None]] = [(node, scope) for node in reversed(list(nodes))]
    while todo:
        node, scope = todo.pop()
        step()
        yield node, scope
        if isinstance(node, FunctionNode):
            below = function_scope(node, scope)
            todo.extend((part, scope) for part in outside_parts(node))
            todo.extend((part, below) for part in own_arguments(node.args))
            body = [node.body] if isinstance(node, ast.Lambda) else node.body
            todo.extend((part, below) for part in reversed(body))
        elif isinstance(node, ast.ClassDef):
            below = class_scope(node, scope)
            todo.extend((part, scope) for part in outside_parts(node))
            todo.extend((part, below) for part in reversed(node.body))
        elif isinstance(node, ComprehensionNode):
            below = comprehension_scope(node, scope)
            outside = node.generators[0].iter
            todo.append((outside, scope))
            todo.extend((part, below) for part in _comprehension_parts(node) if part is not outside)
        else:
            todo.extend((part, scope) for part in reversed(children(node)))


def own_arguments(arguments: ast.arguments) -> list[ast.arg]:
    """The parameters themselves, not those of lambdas among the defaults."""
    everything = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    return [argument for argument in everything if argument is not None]


def _comprehension_parts(node: ComprehensionNode) -> Iterator[ast.AST]:
    for generator in node.generators:
        yield from (generator.target, generator.iter, *generator.ifs)
    yield from (getattr(node, name) for name in ("key", "value", "elt") if hasattr(node, name))


def outside_parts(node: ast.AST) -> list[ast.AST]:
    """The children of a scope-making node that are evaluated in the scope around it."""
    if isinstance(node, ast.Lambda):
        return _argument_parts(node.args)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return [*node.decorator_list, *_argument_parts(node.args), *([node.returns] if node.returns else [])]
    if isinstance(node, ast.ClassDef):
        return [*node.decorator_list, *node.bases, *node.keywords]
    if isinstance(node, ComprehensionNode):
        return [node.generators[0].iter]
    return []


def _argument_parts(arguments: ast.arguments) -> list[ast.AST]:
    annotations = [a.annotation for a in own_arguments(arguments) if a.annotation is not None]
    return [*arguments.defaults, *(d for d in arguments.kw_defaults if d is not None), *annotations]


def _collect(nodes: Iterable[ast.AST], scope: Scope) -> None:
    for node in nodes:
        if isinstance(node, ast.Global):
            scope.globals.update(node.names)
            continue
        if isinstance(node, ast.Nonlocal):
            scope.outer.update(node.names)
            continue
        for name in names_bound_by(node):
            scope.bound.add(name)
        if isinstance(node, ast.Import | ast.ImportFrom):
            scope.kept.update(alias.name.partition(".")[0] for alias in node.names if alias.asname is None)
        if isinstance(node, FunctionNode | ast.ClassDef):
            _collect(outside_parts(node), scope)
        elif isinstance(node, ComprehensionNode):
            _collect(outside_parts(node), scope)
            scope.bound.update(_bound_through(node))
        else:
            _collect(children(node), scope)


def _bound_through(comprehension: ComprehensionNode) -> Iterator[str]:
    """Names that assignment expressions of a comprehension bind in the function around it. Those inside a lambda are
    the lambda's own."""
    todo: list[ast.AST] = list(_comprehension_parts(comprehension))
    while todo:
        node = todo.pop()
        step()
        if isinstance(node, ast.NamedExpr):
            yield node.target.id
        todo.extend(outside_parts(node) if isinstance(node, ast.Lambda) else children(node))
