"""The tier of a change (CONTRACTS section 3): how far a candidate goes from what it builds on.

Whatever is not listed as no change, light or medium is heavy. Reasons name lines of the newer source.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from harness.domain.errors import SourceError
from harness.domain.verdict import TierReason, TierResult
from harness.domain.vocabulary import Backend, Tier
from harness.evaluation.source.agreement import disagreements, line_of
from harness.evaluation.source.body import body_reasons
from harness.evaluation.source.intake import parse
from harness.evaluation.source.normal_form import (
    canonical,
    canonical_body,
    statements_of,
    walks_through_params,
)
from harness.evaluation.source.params import key_lines, read_params, same_value, value_problem
from harness.evaluation.source.steps import analysed, bounded, remembered
from harness.evaluation.source.structure import (
    PARAMS,
    Structure,
    assigned_name,
    decorator_path,
    is_docstring,
    read_structure,
)
from harness.operators.base import OperatorSpec

MEDIUM_OPTIONS = ("parallel", "nogil", "boundscheck", "fastmath")
"""numba decorator options that change how a kernel is compiled but not what it is."""

Cause = tuple[Tier, TierReason]


def classify(base: str, new: str, spec: OperatorSpec, backend: Backend) -> TierResult:
    """The tier of going from ``base`` to ``new`` with every cause, the gravest first.

    Raises:
        SourceError: when either source cannot be parsed, or the two cannot be compared in bounded work.
    """
    with bounded(), analysed():
        return _classify(base, new, spec, backend)


def _classify(base: str, new: str, spec: OperatorSpec, backend: Backend) -> TierResult:
    before, after = read_structure(base, backend), read_structure(new, backend)
    unclear = [*_unclear(base, before, "the earlier source "), *_unclear(new, after, "")]
    if not unclear and statements_of(base) == statements_of(new):
        return TierResult(Tier.NONE)
    causes = [*unclear, *_irregular(before, "the earlier source "), *_irregular(after, "")]
    causes += _skeleton_causes(before, after)
    if PARAMS in before.bound_lines or PARAMS in after.bound_lines:
        causes += _params_causes(before, after, spec)
    for name, kernel in after.kernels.items():
        if name in before.kernels:
            causes += _kernel_causes(before, after, before.kernels[name], kernel)
    if not causes:  # different normal forms without a listed cause: not listed is heavy
        causes = [(Tier.HEAVY, TierReason(None, "the sources differ in a way that no rule lists"))]
    causes.sort(key=lambda cause: (-cause[0].rank, cause[1].line or 0))
    return TierResult(causes[0][0], tuple(dict.fromkeys(reason for _, reason in causes)))


def _unclear(source: str, found: Structure, whose: str) -> list[Cause]:
    """Names that the compiler resolves in another way than the comparison does."""
    return [(Tier.HEAVY, TierReason(line_of(found.tree, name) if not whose else None,
                                    f"{whose}{name} has a scope that cannot be told"))
            for name in _disagreements(source)]


@remembered
def _disagreements(source: str) -> tuple[str, ...]:
    return tuple(sorted(disagreements(parse(source))))


def _irregular(found: Structure, whose: str) -> list[Cause]:
    """Modules in which a name has two meanings: nothing in them can be called light or medium."""
    line_of = (lambda line: line) if not whose else (lambda line: None)
    causes = [(Tier.HEAVY, TierReason(line_of(line), f"{whose}{name} is defined again in line {line}"))
              for name, line in found.redefined()]
    try:
        read_params(found.tree)
    except SourceError as error:
        causes.append((Tier.HEAVY, TierReason(line_of(error.line), f"{whose}{error.text}")))
    return causes


def _skeleton(found: Structure) -> list[tuple[str, str, ast.stmt]]:
    """Every module-level statement as (label, canonical text, node); kernels and PARAMS are compared elsewhere."""
    items: list[tuple[str, str, ast.stmt]] = []
    for position, statement in enumerate(found.tree.body):
        if position == 0 and is_docstring(statement):
            continue
        if isinstance(statement, ast.FunctionDef) and found.kernels.get(statement.name) is statement:
            items.append((f"kernel function {statement.name}", "", statement))
        elif assigned_name(statement) == PARAMS:
            note = statement.annotation if isinstance(statement, ast.AnnAssign) else None
            items.append((PARAMS, canonical(note) if note is not None else "", statement))
        elif isinstance(statement, ast.FunctionDef):
            items.append((statement.name, canonical(statement), statement))
        elif isinstance(statement, ast.Import | ast.ImportFrom):
            items.append(("import", canonical(statement), statement))
        else:
            items.append((assigned_name(statement) or "module-level statement", canonical(statement), statement))
    return items


def _skeleton_causes(before: Structure, after: Structure) -> list[Cause]:
    old, new = _skeleton(before), _skeleton(after)
    if [item[:2] for item in old] == [item[:2] for item in new]:
        return []
    old_keys, new_keys = {item[:2] for item in old}, {item[:2] for item in new}
    old_labels, new_labels = {item[0] for item in old}, {item[0] for item in new}
    causes = []
    for label, text, node in new:
        if (label, text) in old_keys:
            continue
        line = _first_difference(before, node) if label in old_labels else node.lineno
        what = "changed" if label in old_labels and label not in ("import", "module-level statement") else "added"
        causes.append((Tier.HEAVY, TierReason(line, f"{label} {what}")))
    for label, text, _ in old:
        if (label, text) not in new_keys and (label not in new_labels or label in ("import", "module-level statement")):
            causes.append((Tier.HEAVY, TierReason(None, f"{label} removed")))
    if not causes:
        moved = next((n[2].lineno for o, n in zip(old, new, strict=False) if o[:2] != n[:2]), None)
        causes.append((Tier.HEAVY, TierReason(moved, "module-level statements are in another order or number")))
    return causes


def _first_difference(before: Structure, node: ast.stmt) -> int:
    """The line of the first changed statement of a host function, or of the statement itself."""
    earlier = before.hosts.get(node.name) if isinstance(node, ast.FunctionDef) else None
    if earlier is None or not isinstance(node, ast.FunctionDef):
        return node.lineno
    return first_changed_line(earlier, node) or node.lineno


def first_changed_line(earlier: ast.FunctionDef, later: ast.FunctionDef) -> int | None:
    """The line of the first statement of ``later``'s body that differs; ``None`` where the bodies agree."""
    old, new = canonical_body(earlier), canonical_body(later)
    if old == new:
        return None
    statements = later.body[len(later.body) - len(new):]
    same = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    return statements[same].lineno if same < len(statements) else statements[-1].lineno


def _params_causes(before: Structure, after: Structure, spec: OperatorSpec) -> list[Cause]:
    try:
        old, new = read_params(before.tree), read_params(after.tree)
    except SourceError:
        return []  # already a heavy cause
    lines, causes = key_lines(after.tree), []
    for key, value in new.items():
        if key in old and same_value(old[key], value):
            continue
        problem = value_problem(key, value, spec, after.backend)
        tunable = spec.tunable(key, after.backend)
        if problem is not None or tunable is None:
            text = problem.text if problem else f"{key} is not declared"
            causes.append((Tier.HEAVY, TierReason(lines.get(key), f"{PARAMS}: {text}")))
        else:
            was = f"{old[key]!r} to " if key in old else "new, "
            causes.append((tunable.tier, TierReason(lines.get(key), f"{PARAMS}: {key} {was}{value!r}")))
    causes += [(Tier.HEAVY, TierReason(None, f"{PARAMS}: {key} removed")) for key in old if key not in new]
    moved = [key for key, value in new.items()
             if isinstance(value, dict) and isinstance(old.get(key), dict) and _moved(old[key], value)]
    if _moved(old, new) and (walks_through_params(before.tree) or walks_through_params(after.tree)):
        moved.insert(0, "keys")
    return causes + [(Tier.HEAVY, TierReason(lines.get(key), f"{PARAMS}: {key} in another order")) for key in moved]


def _moved(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether the keys that both have stand in another order, which code that walks through them can see."""
    return [key for key in old if key in new] != [key for key in new if key in old]


def _kernel_causes(before: Structure, after: Structure, old: ast.FunctionDef, new: ast.FunctionDef) -> list[Cause]:
    causes = _decorator_causes(before, after, old, new)
    if _signature(old) != _signature(new):
        causes.append((Tier.HEAVY, TierReason(new.lineno, f"signature of {new.name} changed")))
    line = first_changed_line(old, new)
    if line is not None:
        causes.append((Tier.MEDIUM, TierReason(line, f"body of {new.name} changed")))
        causes += body_reasons(old, new, after.backend)
    return causes


def _signature(function: ast.FunctionDef) -> str:
    """Everything of a definition but its name, body and decorators."""
    types: list[ast.AST] = getattr(function, "type_params", [])  # Python 3.12
    bare = ast.FunctionDef(name="_", args=function.args, body=[ast.Pass()], decorator_list=[], returns=function.returns)
    return canonical(bare) + "".join(canonical(node) for node in types)


def _decorator_causes(before: Structure, after: Structure, old: ast.FunctionDef, new: ast.FunctionDef) -> list[Cause]:
    if [canonical(node) for node in old.decorator_list] == [canonical(node) for node in new.decorator_list]:
        return []
    line = new.decorator_list[0].lineno
    heavy = [(Tier.HEAVY, TierReason(line, f"decorators of {new.name} changed"))]
    if len(old.decorator_list) != 1 or len(new.decorator_list) != 1 or after.backend is not Backend.NUMBA:
        return heavy
    old_path, old_options = _options(before, old.decorator_list[0])
    new_path, new_options = _options(after, new.decorator_list[0])
    if old_path != new_path or old_options is None or new_options is None:
        return heavy
    changed = [key for key in sorted({*old_options, *new_options}) if old_options.get(key) != new_options.get(key)]
    if not changed or any(key not in MEDIUM_OPTIONS for key in changed):
        return heavy
    texts = {key: f"option {key} of {new.name} is now {new_options.get(key, 'left out')}"
                  + (" (numeric mode)" if key == "fastmath" else "") for key in changed}
    return [(Tier.MEDIUM, TierReason(line, texts[key])) for key in changed]


def _options(found: Structure, node: ast.expr) -> tuple[str | None, dict[str, str] | None]:
    """A decorator's path and its literal options; ``None`` options where anything else is passed."""
    path = decorator_path(found, node)
    if not isinstance(node, ast.Call):
        return path, {}
    options = {}
    for keyword in node.keywords:
        if keyword.arg is None or not _is_literal(keyword.value):
            return path, None
        options[keyword.arg] = ast.unparse(keyword.value)
    return path, None if node.args else options


def _is_literal(node: ast.expr) -> bool:
    """A constant, or a set or tuple of constants (``fastmath={"contract"}``)."""
    if isinstance(node, ast.Set | ast.Tuple | ast.List):
        return all(isinstance(item, ast.Constant) for item in node.elts)
    return isinstance(node, ast.Constant)
