"""A candidate under examination: structure, rules, report, and the walks that every check needs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from harness.domain.vocabulary import Backend
from harness.evaluation.source.scopes import Scope, nodes_below, outside_parts, own_arguments, scoped_nodes
from harness.evaluation.source.steps import walk
from harness.evaluation.source.structure import Structure, is_kernel
from harness.evaluation.static import allow_numba, allow_triton
from harness.evaluation.static.allowed import Allowed
from harness.evaluation.static.findings import Report
from harness.operators.base import OperatorSpec

Context = Literal["module", "host", "kernel"]
ALLOWED: dict[Backend, Allowed] = {Backend.TRITON: allow_triton.ALLOWED, Backend.NUMBA: allow_numba.ALLOWED}


@dataclass
class Candidate:
    """What the checks share. ``parents`` maps ``id(node)`` to the node above."""

    found: Structure
    spec: OperatorSpec
    prohibited: tuple[str, ...]
    report: Report = field(default_factory=Report)
    parents: dict[int, ast.AST] = field(default_factory=dict)
    arrays: Any = None  # what arrays.find_arrays found, once it was asked
    option_keys: dict[tuple[str, str], dict[str, int] | None] = field(default_factory=dict)  # see ``launch_form``
    defined: dict[int, set[str]] = field(default_factory=dict)  # names of functions in a function; see ``calls``
    functional: dict[str, bool] = field(default_factory=dict)  # constants that hold a function; see ``objects``
    _scoped: list[tuple[Context, ast.AST, Scope | None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for node in walk(self.found.tree):
            for child in ast.iter_child_nodes(node):
                self.parents[id(child)] = node

    @property
    def allowed(self) -> Allowed:
        """The allowlist of the backend."""
        return ALLOWED[self.found.backend]

    def parent(self, node: ast.AST) -> ast.AST | None:
        """The node above ``node``."""
        return self.parents.get(id(node))

    def scoped(self) -> list[tuple[Context, ast.AST, Scope | None]]:
        """Every node with the context and scope it runs in: function bodies, then everything else as module level."""
        if not self._scoped:
            self._scoped = list(self._walk())
        return self._scoped

    def _walk(self) -> Iterator[tuple[Context, ast.AST, Scope | None]]:
        for statement in self.found.tree.body:
            if isinstance(statement, ast.FunctionDef):
                context: Context = "kernel" if is_kernel(self.found, statement) else "host"
                for node, scope in scoped_nodes(statement):
                    yield context, node, scope
                yield from self._outside(statement)
            elif not isinstance(statement, ast.Import | ast.ImportFrom):
                yield from (("module", node, around) for node, around in nodes_below([statement], None))

    def _outside(self, function: ast.FunctionDef) -> Iterator[tuple[Context, ast.AST, Scope | None]]:
        """Decorators, defaults and annotations: module level, but the lambdas of ``heuristics`` are host code."""
        for node, scope in nodes_below([*outside_parts(function), *own_arguments(function.args)], None):
            yield ("module" if scope is None or scope.comprehension else "host"), node, scope
