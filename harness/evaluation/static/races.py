"""Data races of numba kernels: what an iteration of `prange` writes must belong to that iteration.

Every outermost loop over `prange` is looked at, with the file's other kernel functions that it calls. An array that was
not made inside the loop is shared by all iterations; a store into it is right only at an index that depends on the loop
variable. Sums into plain names (``total += x[i]``) are reductions, which numba recognises, and each iteration has its
own copy of whatever it binds. What no text shows, such as two iterations with the same index, the judge's repeated
calls with several threads are for.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from harness.domain.vocabulary import Backend
from harness.evaluation.source.steps import step, walk
from harness.evaluation.static.candidate import Candidate
from harness.evaluation.static.guards import alone
from harness.evaluation.static.stores import Call, Store, stores_of

_PRANGE = "numba.prange"
_THREAD = "numba.get_thread_id"
_RANGES = ("range", _PRANGE)
_VIEWS = frozenset({"reshape", "view", "ravel", "transpose"})
_MOST_CALLS = 8
"""Calls of kernel functions from each other that are followed."""


@dataclass
class _Names:
    """What the names of some statements stand for. ``tainted``: values that differ between the iterations; ``bound``:
    bound by these statements; ``shared``: of those, the ones that may be an array from outside of them, or a view."""

    candidate: Candidate
    tainted: set[str]
    bound: set[str] = field(default_factory=set)
    shared: set[str] = field(default_factory=set)

    def differs(self, node: ast.AST | None) -> bool:
        """Whether an expression's value depends on the iteration. A slice counts by its start."""
        step()
        if node is None:
            return False
        if isinstance(node, ast.Slice):
            return self.differs(node.lower)
        if isinstance(node, ast.Name):
            return node.id in self.tainted
        if isinstance(node, ast.Call) and self.candidate.found.dotted(node.func) == _THREAD:
            return True
        if isinstance(node, ast.Attribute):
            return node.attr not in ("shape", "size", "ndim", "strides") and self.differs(node.value)
        return any(self.differs(child) for child in ast.iter_child_nodes(node))

    def is_shared(self, node: ast.expr) -> bool:
        """Whether an expression may be an array, or a view of one, that other iterations write as well."""
        step()
        if isinstance(node, ast.Name):
            return node.id in self.shared if node.id in self.bound else node.id not in self.tainted
        if isinstance(node, ast.Subscript):
            return not self.differs(node.slice) and self.is_shared(node.value)
        if isinstance(node, ast.Attribute):
            return node.attr == "T" and self.is_shared(node.value)
        if isinstance(node, ast.IfExp):
            return self.is_shared(node.body) or self.is_shared(node.orelse)
        if isinstance(node, ast.BoolOp | ast.Tuple | ast.List):
            return any(map(self.is_shared, node.values if isinstance(node, ast.BoolOp) else node.elts))
        if isinstance(node, ast.Starred | ast.NamedExpr):
            return self.is_shared(node.value)
        return isinstance(node, ast.Call) and self._passed_on(node)

    def _passed_on(self, node: ast.Call) -> bool:
        """Whether a call may give a shared array back: a method that makes a view, or a kernel function of the file
        that returns one of its arguments."""
        if isinstance(node.func, ast.Attribute) and node.func.attr in _VIEWS:
            return self.is_shared(node.func.value)
        called = self.candidate.found.kernels.get(node.func.id) if isinstance(node.func, ast.Name) else None
        if called is None or not any(self.is_shared(argument) for argument in node.args):
            return False
        parameters = {argument.arg for argument in called.args.args}
        return any(isinstance(part, ast.Return) and part.value is not None and _root(part.value) in parameters
                   for part in walk(called))


def check_races(candidate: Candidate) -> None:
    """Block stores of `prange` loops into arrays that all iterations share, at an index that does not depend on the
    loop variable. Without `parallel=True` anywhere in the file `prange` is `range`."""
    found = candidate.found
    if found.backend is not Backend.NUMBA or not any(map(_may_be_parallel, found.kernels.values())):
        return
    for kernel in found.kernels.values():
        for loop in _outermost(candidate, kernel):
            names = _names_in(candidate, loop.body, _targets(loop.target))
            for part in _parts(loop.body):
                for store in stores_of(candidate, part):
                    if names.is_shared(store.array) and not names.differs(store.index) and not alone(
                            candidate, names.differs, part, loop):
                        _report(candidate, loop, store, part)
                _check_call(candidate, names, loop, part)


def _may_be_parallel(kernel: ast.FunctionDef) -> bool:
    return any(keyword.arg is None or (keyword.arg == "parallel" and not (
        isinstance(keyword.value, ast.Constant) and not keyword.value.value))
        for decorator in kernel.decorator_list if isinstance(decorator, ast.Call) for keyword in decorator.keywords)


def _outermost(candidate: Candidate, kernel: ast.FunctionDef) -> Iterator[ast.For]:
    """Loops over `prange` that stand in no other one: numba runs inner ones as plain loops."""
    todo: list[ast.AST] = list(kernel.body)
    while todo:
        node = todo.pop()
        step()
        if isinstance(node, ast.For) and _is_call_of(candidate, node.iter, (_PRANGE,)):
            yield node
        else:
            todo.extend(ast.iter_child_nodes(node))


def _parts(body: list[ast.stmt]) -> Iterator[ast.AST]:
    for statement in body:
        yield from walk(statement)


def _names_in(candidate: Candidate, body: list[ast.stmt], tainted: set[str]) -> _Names:
    """Follow assignments and loops of ``body`` until nothing changes."""
    names = _Names(candidate, set(tainted))
    parts = list(_parts(body))
    names.bound = {part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    while True:
        before = len(names.tainted) + len(names.shared)
        for part in parts:
            _follow(names, part)
        if len(names.tainted) + len(names.shared) == before:
            return names


def _follow(names: _Names, part: ast.AST) -> None:
    if isinstance(part, ast.Assign):
        for target in part.targets:
            _bind(names, target, part.value)
    elif isinstance(part, ast.AnnAssign | ast.NamedExpr) and part.value is not None:
        _bind(names, part.target, part.value)
    elif isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name):
        if names.differs(part.value):
            names.tainted.add(part.target.id)
    elif isinstance(part, ast.For | ast.comprehension):
        _bind_loop(names, part)
    elif isinstance(part, ast.If | ast.While) and names.differs(part.test):
        for inner in _parts([*part.body, *part.orelse]):  # which of the values it gets depends on the iteration
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                names.tainted.add(inner.id)


def _bind(names: _Names, target: ast.expr, value: ast.expr) -> None:
    if isinstance(target, ast.Tuple | ast.List):
        alike = isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts)
        values = value.elts if alike else [value] * len(target.elts)  # type: ignore[attr-defined]
        for inner, part in zip(target.elts, values, strict=True):
            _bind(names, inner, part)
    elif isinstance(target, ast.Name):
        if names.differs(value):
            names.tainted.add(target.id)
        if names.is_shared(value):
            names.shared.add(target.id)


def _bind_loop(names: _Names, loop: ast.For | ast.comprehension) -> None:
    """A loop over `range` differs where its start does: one that always begins at 0 meets those of other iterations."""
    if not _is_call_of(names.candidate, loop.iter, _RANGES):
        _bind(names, loop.target, loop.iter)
        if isinstance(loop.iter, ast.Call) and any(names.is_shared(argument) for argument in loop.iter.args):
            names.shared |= _targets(loop.target)  # enumerate(rows), zip(rows, others), literal_unroll(arrays)
    elif len(loop.iter.args) > 1 and names.differs(loop.iter.args[0]):  # type: ignore[attr-defined]
        names.tainted |= _targets(loop.target)


def _check_call(candidate: Candidate, names: _Names, loop: ast.For, part: ast.AST) -> None:
    """Report a call of the file's own kernel function that stores into a shared array it is given."""
    if not isinstance(part, ast.Call) or alone(candidate, names.differs, part, loop):
        return
    call = Call.of(candidate, part)
    if call is None:
        return
    differing = {name for name, value in call.given.items() if names.differs(value)}
    for parameter, value in call.given.items():
        if names.is_shared(value):
            store = _store_into(candidate, call.function, parameter, differing - {parameter}, _MOST_CALLS)
            if store is not None:
                _report(candidate, loop, Store(value, store.index), part, call.function.name)
                return


def _store_into(candidate: Candidate, function: ast.FunctionDef, parameter: str, differing: set[str],
                depth: int) -> Store | None:
    """A store of ``function`` into its ``parameter`` at an index that none of the ``differing`` parameters leads to."""
    names = _names_in(candidate, function.body, differing)
    names.bound |= {argument.arg for argument in function.args.args}
    names.shared.add(parameter)
    for _ in range(2):  # views of the parameter, and views of those
        for part in _parts(function.body):
            _follow(names, part)
    for part in _parts(function.body):
        for store in stores_of(candidate, part):
            if names.is_shared(store.array) and not names.differs(store.index) and not alone(
                    candidate, names.differs, part, function):
                return store
        call = Call.of(candidate, part) if isinstance(part, ast.Call) and depth else None
        if call is not None:
            inner = {name for name, value in call.given.items() if names.differs(value)}
            for name, value in call.given.items():
                if names.is_shared(value):
                    found = _store_into(candidate, call.function, name, inner - {name}, depth - 1)
                    if found is not None:
                        return found
    return None


def _report(candidate: Candidate, loop: ast.For, store: Store, part: ast.AST, through: str | None = None) -> None:
    variable = ast.unparse(loop.target)
    array = _root(store.array) or ast.unparse(store.array)[:40]
    how = f"`{through}`, called here, writes" if through else "This writes"
    candidate.report.add(
        "parallel_race", f"{how} `{array}`, which all iterations of the `prange` loop in line {loop.lineno} share, at "
        f"an index that does not depend on `{variable}`: threads overwrite each other. Allocate it inside the loop, or "
        f"give it an axis that `{variable}` indexes.", getattr(part, "lineno", loop.lineno))


def _is_call_of(candidate: Candidate, node: ast.expr, paths: tuple[str, ...]) -> bool:
    if not isinstance(node, ast.Call):
        return False
    path = candidate.found.dotted(node.func)
    if path is None and isinstance(node.func, ast.Name):
        alias = candidate.found.constants.get(node.func.id)
        path = node.func.id if alias is None else candidate.found.dotted(alias)
    return path in paths


def _targets(target: ast.AST) -> set[str]:
    return {node.id for node in walk(target) if isinstance(node, ast.Name)}


def _root(node: ast.expr) -> str | None:
    while isinstance(node, ast.Subscript | ast.Attribute | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None
