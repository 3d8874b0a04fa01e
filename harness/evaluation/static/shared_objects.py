"""Module-level lists, dicts and sets live on between calls: host code may read them, and nothing it does may keep a
second way to them through which they could be changed.

Every expression that may be such an object is followed to where it is used. Reading uses are listed; whatever is not on
the list is refused. Local names and parameters that stand for one are followed as well.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from harness.evaluation.source.scopes import Scope
from harness.evaluation.source.steps import step, walk
from harness.evaluation.source.structure import PARAMS
from harness.evaluation.static.candidate import Candidate

_MUTABLE = ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp | ast.Call
_NEVER = 1000
_COUNTING = frozenset({"len", "isinstance", "any", "all", "str", "bool"})
_COPYING = frozenset({"dict", "list", "tuple", "set", "sorted", "max", "min", "sum", "zip", "enumerate", "reversed",
                      "range", "int", "float", "abs", "round"})
_COUNTING_METHODS = frozenset({"index", "keys", "join"})
_READING_METHODS = frozenset({"items", "values", "get"})


@dataclass
class _Shared:
    """Names that may stand for shared objects, per module-level function (``None``: constants), each with the number
    of levels of it that can be changed."""

    candidate: Candidate
    names: dict[tuple[str | None, str], int] = field(default_factory=dict)

    def add(self, owner: str | None, name: str, depth: int) -> None:
        self.names[owner, name] = max(self.names.get((owner, name), 0), depth)


def check_shared_objects(candidate: Candidate) -> None:
    """Report uses of module-level containers through which host code could change them."""
    shared = _Shared(candidate)
    constants = dict(candidate.found.constants)
    if candidate.found.params is not None:
        constants[PARAMS] = candidate.found.params
    for name in constants:
        depth = _depth(constants, constants[name], frozenset({name}))
        if depth:
            shared.add(None, name, depth)
    while True:
        before = dict(shared.names)
        bad = [place for place in (_misuse(shared, *place) for place in _places(shared)) if place is not None]
        if shared.names == before:
            break
    for node, text in bad:
        candidate.report.add("kept_state", text, getattr(node, "lineno", None))


def _depth(constants: dict[str, ast.expr], value: ast.expr, seen: frozenset[str]) -> int:
    """How many times one can reach into a value until what is left is immutable; 0 for what is immutable at once."""
    step()
    if isinstance(value, ast.List | ast.Set | ast.Tuple | ast.Dict):
        items = value.values if isinstance(value, ast.Dict) else value.elts
        inside = max((_depth(constants, item, seen) for item in items), default=0)
        return inside + 1 if inside or not isinstance(value, ast.Tuple) else 0
    if isinstance(value, ast.Name) and value.id in constants:
        return _NEVER if value.id in seen else _depth(constants, constants[value.id], seen | {value.id})
    if any(isinstance(node, _MUTABLE) or (isinstance(node, ast.Name) and node.id in constants
                                          and _depth(constants, node, seen)) for node in walk(value)):
        return _NEVER
    return 0


def _places(shared: _Shared) -> list[tuple[str, ast.Name, int]]:
    """Every name in host code that may stand for a shared object: function, name, levels that can be changed."""
    found = []
    for context, node, scope in shared.candidate.scoped():
        if context == "kernel" or not isinstance(node, ast.Name):
            continue
        host = _host(shared.candidate, node)
        key = (host if _is_local(node.id, scope) else None, node.id)
        if host is not None and key in shared.names:
            found.append((host, node, shared.names[key]))
    return found


def _misuse(shared: _Shared, host: str, node: ast.expr, depth: int) -> tuple[ast.AST, str] | None:
    """What is wrong with the use of one shared object; adds the names that stand for it from here on."""
    candidate, deep = shared.candidate, depth > 1
    above = candidate.parent(node)
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        if isinstance(above, ast.AugAssign):
            return node, (f"`{ast.unparse(above)[:60]}` changes a container that lives on between calls. Make a new "
                          "value: `name = name + ...`.")
        return None  # a name that is bound anew
    if isinstance(above, ast.Subscript) and above.value is node:
        if not isinstance(above.ctx, ast.Load):
            return None  # reported as a store
        inside = depth if isinstance(above.slice, ast.Slice) else depth - 1  # a slice holds the same items
        return _misuse(shared, host, above, inside) if deep else None
    if isinstance(above, ast.Attribute):
        call = candidate.parent(above)
        if above.attr in _COUNTING_METHODS or (above.attr in _READING_METHODS and not deep):
            return None
        if above.attr == "get" and isinstance(call, ast.Call):
            return _misuse(shared, host, call, depth - 1)
        return _refused(node, above)
    if isinstance(above, ast.IfExp | ast.BoolOp | ast.NamedExpr) and not (
            isinstance(above, ast.IfExp) and above.test is node):
        if isinstance(above, ast.NamedExpr):
            shared.add(host, above.target.id, depth)
        return _misuse(shared, host, above, depth)
    if isinstance(above, ast.Assign | ast.AnnAssign) and above.value is node:
        targets = above.targets if isinstance(above, ast.Assign) else [above.target]
        for target in targets:
            if isinstance(target, ast.Name):
                shared.add(host, target.id, depth)
            elif deep or not isinstance(target, ast.Tuple | ast.List):
                return _refused(node, above)
        return None
    if isinstance(above, ast.Call | ast.keyword):
        return _handed_over(shared, node, above, depth)
    return None if _reads(above, node, deep) else _refused(node, above)


def _reads(above: ast.AST | None, node: ast.expr, deep: bool) -> bool:
    """Whether a use gives no second way to the object."""
    if isinstance(above, ast.Compare | ast.Expr | ast.If | ast.While | ast.Assert | ast.UnaryOp | ast.FormattedValue):
        return True
    if isinstance(above, ast.IfExp):
        return above.test is node
    if isinstance(above, ast.For | ast.comprehension | ast.BinOp | ast.Starred | ast.AugAssign):
        return not deep
    return isinstance(above, ast.Dict) and not deep and any(
        key is None and value is node for key, value in zip(above.keys, above.values, strict=True))


def _handed_over(shared: _Shared, node: ast.expr, above: ast.Call | ast.keyword,
                 depth: int) -> tuple[ast.AST, str] | None:
    candidate, deep = shared.candidate, depth > 1
    call = candidate.parent(above) if isinstance(above, ast.keyword) else above
    spread = isinstance(above, ast.keyword) and above.arg is None
    if spread and not deep:
        return None  # a dict of its own is made of it
    name = call.func.id if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) else ""
    helper = candidate.found.hosts.get(name)
    if helper is not None and isinstance(call, ast.Call) and not spread:
        names = [argument.arg for argument in (*helper.args.posonlyargs, *helper.args.args)]
        taken = above.arg if isinstance(above, ast.keyword) else dict(zip(map(id, call.args), names, strict=False)).get(
            id(node))
        starred = any(isinstance(argument, ast.Starred) for argument in call.args)
        if taken is not None and not starred:
            shared.add(name, taken, depth)
            return None
    if name in _COUNTING or (name in _COPYING and not deep):
        return None
    return _refused(node, call)


def _refused(node: ast.expr, above: ast.AST | None) -> tuple[ast.AST, str]:
    return node, (f"`{ast.unparse(node)[:40]}` is a container that lives on between calls, and this use of it could "
                  "let it be changed. Read its items by key or index, or write it as a tuple.")


def _host(candidate: Candidate, node: ast.AST) -> str | None:
    above = candidate.parent(node)
    while above is not None and candidate.parent(above) is not candidate.found.tree:
        above = candidate.parent(above)
    return above.name if isinstance(above, ast.FunctionDef) else None


def _is_local(name: str, scope: Scope | None) -> bool:
    return scope is not None and scope.owner(name) is not None
