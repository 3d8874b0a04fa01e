"""Which names of host code may hold an array: arguments, allocations, views, and containers of these.

Flow-insensitive and shared by all functions nested in one module-level function: a name that may hold an array anywhere
counts everywhere. Shapes, strides and other plain numbers taken from arrays do not count.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from harness.evaluation.source.scopes import parameter_names
from harness.evaluation.source.steps import step, walk
from harness.evaluation.static.candidate import Candidate

ALLOCATIONS = frozenset({"empty", "empty_like", "zeros", "zeros_like", "empty_strided", "new_empty", "new_zeros"})
VIEWS = frozenset({"view", "reshape", "unsqueeze", "squeeze", "transpose", "permute", "flatten", "expand", "narrow",
                   "select", "contiguous", "t", "movedim", "view_as", "expand_as", "unflatten", "zero_", "fill_"})
_CONTAINER_METHODS = frozenset({"get", "items", "values", "pop", "setdefault"})
_CONTAINER_BUILTINS = frozenset({"dict", "list", "tuple", "set", "zip", "enumerate", "reversed", "sorted", "max",
                                 "min"})
Function = ast.FunctionDef | ast.Lambda


@dataclass
class Arrays:
    """The answer for one candidate: per module-level host function, the names that may hold arrays (``names``), and
    those of them that may be an array rather than a container of arrays (``itself``)."""

    candidate: Candidate
    ranks: dict[str, int] = field(default_factory=dict)
    names: dict[str, set[str]] = field(default_factory=dict)
    itself: dict[str, set[str]] = field(default_factory=dict)
    returning: set[int] = field(default_factory=set)
    _functions: dict[tuple[str, str], list[tuple[str, Function]]] = field(default_factory=dict)

    def may_hold(self, host: str, node: ast.AST) -> bool:
        """Whether an expression of module-level function ``host`` may be, or contain, an array."""
        step()
        if isinstance(node, ast.Name):
            return node.id in self.names[host]
        if isinstance(node, ast.Subscript):
            return self.may_hold(host, node.value) and not self.is_element(host, node)
        if isinstance(node, ast.Attribute):
            return node.attr in ("T", "mT") and self.may_hold(host, node.value)
        if isinstance(node, ast.Call):
            return self._call_holds(host, node)
        if isinstance(node, ast.IfExp):
            return self.may_hold(host, node.body) or self.may_hold(host, node.orelse)
        if isinstance(node, ast.BoolOp | ast.Tuple | ast.List | ast.Set):
            return any(self.may_hold(host, item) for item in getattr(node, "values", None) or getattr(node, "elts", []))
        if isinstance(node, ast.Dict):
            return any(self.may_hold(host, item) for item in node.values)
        if isinstance(node, ast.Starred | ast.NamedExpr | ast.FormattedValue | ast.keyword):
            return self.may_hold(host, node.value)
        if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp):
            return self.may_hold(host, node.elt)
        return isinstance(node, ast.DictComp) and self.may_hold(host, node.value)

    def is_array(self, host: str, node: ast.AST) -> bool:
        """Whether an expression may be an array itself, so that a loop over it would read values."""
        step()
        if isinstance(node, ast.Name):
            return node.id in self.itself[host]
        if isinstance(node, ast.Subscript):
            return self.is_array(host, node.value) and not self.is_element(host, node)
        if isinstance(node, ast.Attribute):
            return node.attr in ("T", "mT") and self.is_array(host, node.value)
        if isinstance(node, ast.IfExp):
            return self.is_array(host, node.body) or self.is_array(host, node.orelse)
        if isinstance(node, ast.BoolOp):
            return any(self.is_array(host, value) for value in node.values)
        if isinstance(node, ast.NamedExpr):
            return self.is_array(host, node.value)
        if not isinstance(node, ast.Call):
            return False
        if isinstance(node.func, ast.Attribute) and node.func.attr in VIEWS and self.candidate.found.dotted(
                node.func) is None:
            return self.is_array(host, node.func.value)
        last = (self.candidate.found.dotted(node.func) or "").rpartition(".")[2]
        return last in ALLOCATIONS or (isinstance(node.func, ast.Attribute) and node.func.attr in ALLOCATIONS)

    def is_element(self, host: str, node: ast.Subscript) -> bool:
        """``x[i, j]`` with as many plain indices as an argument of `run` has axes."""
        if host != "run" or not isinstance(node.value, ast.Name) or node.value.id not in self.ranks:
            return False
        indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        plain = all(not isinstance(index, ast.Slice | ast.Starred)
                    and not (isinstance(index, ast.Constant) and index.value in (None, Ellipsis)) for index in indices)
        return plain and len(indices) == self.ranks[node.value.id]

    def _call_holds(self, host: str, node: ast.Call) -> bool:
        function = node.func
        path = self.candidate.found.dotted(function)
        if path is None and isinstance(function, ast.Name):
            alias = self.candidate.found.constants.get(function.id)
            path = self.candidate.found.dotted(alias) if alias is not None else None
        if path is not None:
            return path.rpartition(".")[2] in ALLOCATIONS
        if isinstance(function, ast.Attribute):
            if function.attr in ALLOCATIONS:
                return True
            return function.attr in VIEWS | _CONTAINER_METHODS and self.may_hold(host, function.value)
        if not isinstance(function, ast.Name):
            return not isinstance(function, ast.Subscript)  # a launch gives nothing back
        if function.id in _CONTAINER_BUILTINS:
            return any(self.may_hold(host, argument) for argument in [*node.args, *node.keywords])
        called = self.called(host, function.id)
        if called:
            return any(id(target) in self.returning for _, target in called)
        return function.id in self.names[host]

    def called(self, host: str, name: str) -> list[tuple[str, Function]]:
        """The functions and lambdas that ``name`` may mean inside ``host``, each with its module-level function."""
        local = self._functions.get((host, name))
        if local:
            return local
        found = self.candidate.found.hosts.get(name)
        return [(name, found)] if found is not None else []


def find_arrays(candidate: Candidate) -> Arrays:
    """Propagate from the arguments of `run` through assignments, loops, containers and calls until nothing changes;
    once per candidate."""
    if candidate.arrays is None:
        candidate.arrays = _find(candidate)
    return candidate.arrays


def _find(candidate: Candidate) -> Arrays:
    ranks = {argument.name: len(argument.dims) for argument in candidate.spec.arguments}
    arrays = Arrays(candidate, ranks, {name: set() for name in candidate.found.hosts},
                    {name: set() for name in candidate.found.hosts})
    if "run" in arrays.names:
        arrays.names["run"], arrays.itself["run"] = set(ranks), set(ranks)
    for host, function in candidate.found.hosts.items():
        for node in walk(function):
            for name, target in _named_functions(node, function):
                arrays._functions.setdefault((host, name), []).append((host, target))
    while True:
        before = _size(arrays)
        for host, function in candidate.found.hosts.items():
            for node in walk(function):
                _propagate(arrays, host, node)
        if _size(arrays) == before:
            return arrays


def _size(arrays: Arrays) -> int:
    held = sum(len(names) for names in [*arrays.names.values(), *arrays.itself.values()])
    return held + len(arrays.returning)


def _named_functions(node: ast.AST, outer: ast.FunctionDef) -> list[tuple[str, Function]]:
    if isinstance(node, ast.FunctionDef) and node is not outer:
        return [(node.name, node)]
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
        return [(target.id, node.value) for target in node.targets if isinstance(target, ast.Name)]
    return []


def _propagate(arrays: Arrays, host: str, node: ast.AST) -> None:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            _assign(arrays, host, target, node.value)
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
        _assign(arrays, host, node.target, node.value)
    elif isinstance(node, ast.For | ast.comprehension) and arrays.may_hold(host, node.iter):
        arrays.names[host] |= _names(node.target)
        if isinstance(node.iter, ast.Tuple | ast.List | ast.Set) and any(
                arrays.is_array(host, item) for item in node.iter.elts):
            arrays.itself[host] |= _names(node.target)
    elif isinstance(node, ast.FunctionDef):
        if any(isinstance(part, ast.Return) and part.value is not None and arrays.may_hold(host, part.value)
               for part in walk(node)):
            arrays.returning.add(id(node))
    elif isinstance(node, ast.Lambda) and arrays.may_hold(host, node.body):
        arrays.returning.add(id(node))
    elif isinstance(node, ast.Call):
        _pass_arguments(arrays, host, node)


def _assign(arrays: Arrays, host: str, target: ast.expr, value: ast.expr) -> None:
    if isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List) and len(
            target.elts) == len(value.elts):
        for inner, part in zip(target.elts, value.elts, strict=True):
            _assign(arrays, host, inner, part)
    elif arrays.may_hold(host, value):
        arrays.names[host] |= _names(target)
        if isinstance(target, ast.Name) and arrays.is_array(host, value):
            arrays.itself[host].add(target.id)


def _pass_arguments(arrays: Arrays, host: str, node: ast.Call) -> None:
    """Arguments that may hold arrays make the called function's parameters hold them; a store into a list counts."""
    if isinstance(node.func, ast.Attribute) and node.func.attr in ("append", "extend", "insert", "update", "add"):
        if any(arrays.may_hold(host, argument) for argument in [*node.args, *node.keywords]):
            arrays.names[host] |= _names(node.func.value)
    elif isinstance(node.func, ast.Name):
        for owner, function in arrays.called(host, node.func.id):
            names = list(parameter_names(function.args))
            for position, argument in enumerate(node.args):
                if arrays.may_hold(host, argument):
                    every = isinstance(argument, ast.Starred)
                    arrays.names[owner] |= set(names if every else names[position:position + 1])
                    if arrays.is_array(host, argument):
                        arrays.itself[owner] |= set(names[position:position + 1]) - _gathering(function)
            for keyword in node.keywords:
                if arrays.may_hold(host, keyword):
                    arrays.names[owner] |= {keyword.arg} if keyword.arg else set(names)
                    if keyword.arg and arrays.is_array(host, keyword.value):
                        arrays.itself[owner].add(keyword.arg)


def _gathering(function: Function) -> set[str]:
    """Parameters that gather several arguments: containers, whatever is passed."""
    return {part.arg for part in (function.args.vararg, function.args.kwarg) if part is not None}


def _names(target: ast.AST) -> set[str]:
    return {node.id for node in walk(target) if isinstance(node, ast.Name)}
