"""The form of a launch: ``kernel[grid](...)`` at once, with options that are written out."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from harness.domain.errors import SourceError
from harness.domain.vocabulary import Backend
from harness.domain.words import quoted
from harness.evaluation.source.params import key_lines, read_params
from harness.evaluation.source.scopes import parameter_names
from harness.evaluation.source.steps import step, walk
from harness.evaluation.static.candidate import Candidate

_READING = ("get", "items", "keys", "values")
Keys = dict[str, int]
"""Option names with the line on which each stands first."""


def check_launch_form(candidate: Candidate) -> None:
    """Report Triton launches that are prepared without being called, or whose options are not on the list."""
    if candidate.found.backend is not Backend.TRITON:
        return
    for host in candidate.found.hosts.values():
        aliases = kernel_aliases(candidate, host)
        for node in walk(host):
            if isinstance(node, ast.Subscript):
                _check_form(candidate, host, node, aliases)


def _check_form(candidate: Candidate, host: ast.FunctionDef, node: ast.Subscript, aliases: dict[str, set[str]]) -> None:
    call = candidate.parent(node)
    called = isinstance(call, ast.Call) and call.func is node
    name = node.value.id if isinstance(node.value, ast.Name) else None
    if name in aliases and called and not isinstance(candidate.parent(call), ast.Expr):  # type: ignore[arg-type]
        candidate.report.add("launch_option", f"What this launch of {name} gives back is used. Write the launch as a "
                             "statement of its own.", node.lineno)
    elif name in aliases and called:
        _check_options(candidate, host, call, aliases[name])  # type: ignore[arg-type]
    elif name in aliases or called:
        candidate.report.add("launch_option", f"`{ast.unparse(node)[:60]}` is not a plain launch. Write "
                             "kernel[grid](...) in one expression, with the kernel function's name.", node.lineno)


def kernel_aliases(candidate: Candidate, host: ast.FunctionDef) -> dict[str, set[str]]:
    """Kernel functions and local names that stand for them (``kernel = _small if cols < 1024 else _large``)."""
    known = {name: {name} for name in candidate.found.kernels}
    while True:
        before = sum(map(len, known.values()))
        for node in walk(host):
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value is not None:
                if isinstance(node.value, ast.Call):
                    continue
                kernels = {kernel for name in _names(node.value) if name in known for kernel in known[name]}
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for name in {name for target in targets for name in _names(target)} if kernels else ():
                    known[name] = known.get(name, set()) | kernels
        if sum(map(len, known.values())) == before:
            return known


def _check_options(candidate: Candidate, host: ast.FunctionDef, call: ast.Call, kernels: set[str]) -> None:
    options = candidate.allowed.launch_options
    fine = set(options)
    for kernel in kernels:
        fine |= set(parameter_names(candidate.found.kernels[kernel].args))
    names = " or ".join(sorted(kernels))
    for keyword in call.keywords:
        keys = {keyword.arg: call.lineno} if keyword.arg else _expanded_keys(candidate, host, keyword.value)
        if keys is None:
            candidate.report.add("launch_option", f"The options of this launch of {names} cannot be read. Write them "
                                 "out, or pass **PARAMS.", call.lineno)
            continue
        for key, line in keys.items():
            declared = candidate.spec.tunable(key, Backend.TRITON) is not None
            if key not in fine and not (keyword.arg is None and declared):
                shown = key if key.isidentifier() else quoted(key, 60)
                candidate.report.add("launch_option", f"{shown} is neither a parameter of {names} nor a launch option "
                                     f"({', '.join(sorted(options))}).", line)


def _expanded_keys(candidate: Candidate, host: ast.FunctionDef, value: ast.expr) -> Keys | None:
    """The keys behind ``**value``; ``None`` where they cannot be read from the text."""
    step()
    if isinstance(value, ast.Name) and value.id == "PARAMS":
        return _keys_of_params(candidate, value.lineno)
    if isinstance(value, ast.Dict):
        return _together(_expanded_keys(candidate, host, item) if key is None else _constant(key)
                         for key, item in zip(value.keys, value.values, strict=True))
    if isinstance(value, ast.DictComp):
        return _keys_of_params(candidate, value.lineno) if _over_params(value) else None
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "dict":
        written = {keyword.arg: value.lineno for keyword in value.keywords if keyword.arg is not None}
        parts = [*value.args, *(keyword.value for keyword in value.keywords if keyword.arg is None)]
        return _together([written, *(_expanded_keys(candidate, host, part) for part in parts)])
    return _keys_of_name(candidate, host, value.id) if isinstance(value, ast.Name) else None


def _keys_of_params(candidate: Candidate, line: int) -> Keys:
    try:
        lines = key_lines(candidate.found.tree)
        return {key: lines.get(key, line) for key in read_params(candidate.found.tree)}
    except SourceError:
        return {}  # reported as such


def _together(parts: Iterable[Keys | None]) -> Keys | None:
    """All keys with the line where each stands first; ``None`` where one part cannot be read."""
    keys: Keys = {}
    for part in parts:
        if part is None:
            return None
        step(len(part))
        keys = part | keys
    return keys


def _over_params(value: ast.DictComp) -> bool:
    """``{key: ... for key, value in PARAMS.items() if ...}``: the keys are PARAMS' own."""
    if len(value.generators) != 1 or not isinstance(value.key, ast.Name):
        return False
    source, target = value.generators[0].iter, value.generators[0].target
    if isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute):
        source = source.func.value if source.func.attr in ("items", "keys") else source
    first = target.elts[0] if isinstance(target, ast.Tuple) and target.elts else target
    return _is(source, "PARAMS") and _is(first, value.key.id)


def _keys_of_name(candidate: Candidate, host: ast.FunctionDef, name: str) -> Keys | None:
    """Keys of every dict that a local name is bound to, and of every store into it; read once a name. A name whose
    keys come out of its own, over others or not, cannot be read."""
    asked = (host.name, name)
    if asked not in candidate.option_keys:
        candidate.option_keys[asked] = None
        candidate.option_keys[asked] = _together(_stores(candidate, host, name))
    return candidate.option_keys[asked]


def _stores(candidate: Candidate, host: ast.FunctionDef, name: str) -> Iterator[Keys | None]:
    bound = False
    for node in walk(host):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            statement = candidate.parent(node)
            plain = isinstance(statement, ast.Assign | ast.AugAssign) and name not in _names(statement.value)
            yield _expanded_keys(candidate, host, statement.value) if plain else None  # type: ignore[union-attr]
            bound = True
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and _is(node.value, name):
            yield _constant(node.slice)
        elif isinstance(node, ast.Attribute) and _is(node.value, name) and node.attr not in _READING:
            yield None
    if not bound:
        yield None


def _constant(node: ast.expr) -> Keys | None:
    return {node.value: node.lineno} if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _is(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in walk(node) if isinstance(part, ast.Name)}
