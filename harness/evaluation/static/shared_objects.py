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
    others: set[tuple[str | None, str]] = field(default_factory=set)
    """Names that may stand for something else than a table of PARAMS, a dict of plain values that no launch changes."""

    def add(self, owner: str | None, name: str, depth: int, *, table: bool = False) -> None:
        self.names[owner, name] = max(self.names.get((owner, name), 0), depth)
        if not table:
            self.others.add((owner, name))

    def is_table(self, host: str, node: ast.expr) -> bool:
        """Whether an expression is rooted in PARAMS alone, whose values are plain ones and tables of plain ones."""
        while isinstance(node, ast.Subscript):
            node = node.value
        if not isinstance(node, ast.Name):
            return False
        owner = host if (host, node.id) in self.names else None
        return (owner, node.id) in self.names and (owner, node.id) not in self.others


def check_shared_objects(candidate: Candidate) -> None:
    """Report uses of module-level containers through which host code could change them."""
    shared = _Shared(candidate)
    constants = dict(candidate.found.constants)
    if candidate.found.params is not None:
        constants[PARAMS] = candidate.found.params
    for name in constants:
        depth = _depth(constants, constants[name], frozenset({name}))
        if depth:
            shared.add(None, name, depth, table=name == PARAMS and _plain_tables(constants[name]))
    while True:
        before = dict(shared.names)
        bad = [place for place in (_misuse(shared, *place) for place in _places(shared)) if place is not None]
        if shared.names == before:
            break
    for node, text in bad:
        candidate.report.add("kept_state", text, getattr(node, "lineno", None))


def _plain_tables(params: ast.expr) -> bool:
    return isinstance(params, ast.Dict) and all(
        isinstance(value, ast.Constant) or (isinstance(value, ast.Dict) and all(
            isinstance(item, ast.Constant) for item in value.values)) for value in params.values)


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
                shared.add(host, target.id, depth, table=shared.is_table(host, node))
            elif deep or not isinstance(target, ast.Tuple | ast.List):
                return _refused(node, above)
        return None
    if isinstance(above, ast.Tuple | ast.List) and _unpacked(shared, host, node, above, depth):
        return None
    if isinstance(above, ast.Call | ast.keyword):
        return _handed_over(shared, host, node, above, depth)
    return None if _reads(above, node, deep) else _refused(node, above)


def _unpacked(shared: _Shared, host: str, node: ast.expr, above: ast.Tuple | ast.List, depth: int) -> bool:
    """``a, b = PARAMS["A"], PARAMS["B"]``: each name stands for its own value."""
    statement = shared.candidate.parent(above)
    if not isinstance(statement, ast.Assign) or statement.value is not above:
        return False
    place = next(number for number, item in enumerate(above.elts) if item is node)
    for target in statement.targets:
        if not isinstance(target, ast.Tuple | ast.List) or len(target.elts) != len(above.elts):
            return False
        name = target.elts[place]
        if not isinstance(name, ast.Name) or any(isinstance(item, ast.Starred) for item in (*target.elts, *above.elts)):
            return False
        shared.add(host, name.id, depth, table=shared.is_table(host, node))
    return True


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


def _handed_over(shared: _Shared, host: str, node: ast.expr, above: ast.Call | ast.keyword,
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
            shared.add(name, taken, depth, table=shared.is_table(host, node))
            return None
    value = not deep and depth < shared.names.get((None, PARAMS), 0)  # a value of PARAMS, not PARAMS itself
    if value and not spread and helper is None and shared.is_table(host, node):
        return None  # kernels and libraries change no dict of plain values
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
