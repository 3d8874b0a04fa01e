"""What a candidate consists of: imports, PARAMS, kernel functions, host functions, other statements."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from harness.domain.vocabulary import Backend
from harness.evaluation.source.intake import parse
from harness.evaluation.source.steps import walk

PARAMS = "PARAMS"
RUN = "run"
KERNEL_DECORATORS: dict[Backend, tuple[str, ...]] = {
    Backend.TRITON: ("triton.jit", "triton.experimental.gluon.jit"),
    Backend.NUMBA: ("numba.njit", "numba.jit"),
}
"""Dotted paths whose decoration makes a function a kernel function."""
# Tuples, because a union would be made anew at every node that is asked about.
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)
_CAPTURES = (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)


@dataclass
class Structure:
    """A candidate's module level. ``kernels`` and ``hosts`` map names to their (last) definition; ``bound`` counts how
    often each module-level name is bound, on lines in ``bound_lines``; ``rest`` are statements of any other kind."""

    tree: ast.Module
    backend: Backend
    imports: dict[str, str] = field(default_factory=dict)
    kernels: dict[str, ast.FunctionDef] = field(default_factory=dict)
    hosts: dict[str, ast.FunctionDef] = field(default_factory=dict)
    constants: dict[str, ast.expr] = field(default_factory=dict)
    params: ast.expr | None = None
    bound_lines: dict[str, list[int]] = field(default_factory=dict)
    rest: list[ast.stmt] = field(default_factory=list)

    @property
    def run(self) -> ast.FunctionDef | None:
        """The host entry point."""
        return self.hosts.get(RUN)

    def redefined(self) -> Iterator[tuple[str, int]]:
        """Names bound more than once at module level, with the line of each later binding."""
        for name, lines in self.bound_lines.items():
            for line in lines[1:]:
                yield name, line

    def dotted(self, node: ast.expr) -> str | None:
        """``torch.nn.functional`` for an attribute chain that starts at an imported name, else ``None``."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self.imports:
            return None
        return ".".join([self.imports[node.id], *reversed(parts)])


def read_structure(source: str | ast.Module, backend: Backend) -> Structure:
    """Sort a module's statements into their kinds.

    Raises:
        SourceError: when ``source`` is text that cannot be parsed.
    """
    tree = parse(source) if isinstance(source, str) else source
    found = Structure(tree, backend)
    for position, statement in enumerate(tree.body):
        if isinstance(statement, ast.Import | ast.ImportFrom):
            _add_import(found, statement)
        elif isinstance(statement, ast.FunctionDef):
            _bind(found, statement.name, statement.lineno)
        elif (name := assigned_name(statement)) is not None:
            _bind(found, name, statement.lineno)
            value = statement.value  # type: ignore[attr-defined]
            if name == PARAMS:
                found.params = value
            else:
                found.constants[name] = value
        elif not (position == 0 and is_docstring(statement)):
            found.rest.append(statement)
            for node in walk(statement):
                for name in names_bound_by(node):
                    _bind(found, name, node.lineno)  # type: ignore[attr-defined]
    for statement in tree.body:  # after all imports are known
        if isinstance(statement, ast.FunctionDef):
            kind = found.kernels if is_kernel(found, statement) else found.hosts
            kind[statement.name] = statement
    return found


def is_kernel(found: Structure, function: ast.FunctionDef) -> bool:
    """Whether one of the decorators is the backend's jit; ``run`` is host code whatever it wears."""
    if function.name == RUN:
        return False
    return any(decorator_path(found, node) in KERNEL_DECORATORS[found.backend] for node in function.decorator_list)


def decorator_path(found: Structure, node: ast.expr) -> str | None:
    """The dotted path of a decorator, called or bare."""
    return found.dotted(node.func if isinstance(node, ast.Call) else node)


def assigned_name(statement: ast.stmt) -> str | None:
    """``X`` of ``X = value`` or ``X: T = value``; ``None`` for any other statement."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target: ast.expr = statement.targets[0]
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        target = statement.target
    else:
        return None
    return target.id if isinstance(target, ast.Name) else None


def is_docstring(statement: ast.stmt) -> bool:
    """Whether a statement is a bare string."""
    return (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            and isinstance(statement.value.value, str))


def names_bound_by(node: ast.AST) -> tuple[str, ...]:
    """Names that this one node binds or deletes, in whatever scope it stands."""
    if isinstance(node, ast.Name):  # the commonest by far
        return () if isinstance(node.ctx, ast.Load) else (node.id,)
    if isinstance(node, _DEFINITIONS):
        return (node.name,)
    if isinstance(node, _IMPORTS):
        return tuple(alias.asname or alias.name.partition(".")[0] for alias in node.names)
    if isinstance(node, _CAPTURES):
        return (node.name,) if node.name else ()
    if isinstance(node, ast.MatchMapping) and node.rest:
        return (node.rest,)
    return ()


def _bind(found: Structure, name: str, line: int) -> None:
    found.bound_lines.setdefault(name, []).append(line)


def _add_import(found: Structure, statement: ast.Import | ast.ImportFrom) -> None:
    for alias in statement.names:
        if isinstance(statement, ast.Import):
            name = alias.asname or alias.name.partition(".")[0]
            path = alias.name if alias.asname else name
            if alias.asname is None and name in found.imports and found.imports[name] == name:
                continue  # `import triton` and `import triton.language` bind the same name to the same module
        else:
            name = alias.asname or alias.name
            path = f"{'.' * statement.level}{statement.module or ''}.{alias.name}"
        _bind(found, name, statement.lineno)
        found.imports[name] = path
