"""Numeric modes, narrow accumulators, atomics and inline assembly: shown to the reviewer, blocked where prohibited."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from harness.domain.vocabulary import Backend
from harness.evaluation.source.accumulators import accumulators, dot_out_dtypes, narrowest
from harness.evaluation.source.body import special_call
from harness.evaluation.source.steps import walk
from harness.evaluation.static.allow_triton import GL, TL
from harness.evaluation.static.candidate import Candidate

_MODES = {"fastmath", "input_precision", "allow_tf32", "max_num_imprecise_acc", "fp_downcast_rounding"}
_DOT_POSITIONS = {3: "input_precision", 4: "allow_tf32", 5: "max_num_imprecise_acc"}
_EXACT = {"ieee", "False", "0", "None"}
_CODES = {"atomics": "atomics", "inline assembly": "inline_assembly"}
_NARROW = ("float16", "bfloat16", "half")
_FAST = "fast_"


def check_numeric(candidate: Candidate) -> None:
    """Report numeric modes in decorators and calls, and what narrows or reorders arithmetic."""
    for context, node, _ in candidate.scoped():
        if isinstance(node, ast.keyword) and node.arg in _MODES:
            _check_mode(candidate, node.arg, node.value)
        elif isinstance(node, ast.Call) and context == "kernel" and _is_dot(candidate, node):
            for position, name in _DOT_POSITIONS.items():
                if len(node.args) > position:
                    _check_mode(candidate, name, node.args[position])
        elif isinstance(node, ast.Attribute) and node.attr.startswith(_FAST) and (
                candidate.found.dotted(node) or "").startswith(TL):
            _flag(candidate, "numeric modes", "numeric_mode", f"`{node.attr}` is a function of reduced accuracy.",
                  node.lineno)
        elif (what := special_call(node)) is not None and not _is_import(node):
            _flag(candidate, what, _CODES[what], f"{what.capitalize()} in use: `{ast.unparse(node)}`.",
                  node.lineno)  # type: ignore[attr-defined]
    if candidate.found.backend is Backend.TRITON:
        for kernel in candidate.found.kernels.values():
            _check_accumulators(candidate, kernel)


def _check_mode(candidate: Candidate, name: str, node: ast.expr) -> None:
    value = ast.unparse(node).strip("'")
    if value not in _EXACT:
        _flag(candidate, "numeric modes", "numeric_mode", f"The numeric mode {name}={value} trades accuracy or special "
              "values for speed.", node.lineno)


def _check_accumulators(candidate: Candidate, kernel: ast.FunctionDef) -> None:
    bits = min([narrowest(kernel, Backend.TRITON) or 64, *dot_out_dtypes(kernel)])
    if bits < 32:
        candidate.report.add("narrow_accumulator", f"{kernel.name} accumulates in {bits} bits; half-precision inputs "
                             "accumulate in float32.", kernel.lineno)
    sums = accumulators(kernel)
    for node in walk(kernel):
        if isinstance(node, ast.Assign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            mine = {target.id for target in targets if isinstance(target, ast.Name)} & sums
            if mine and any(_narrows(candidate, part) for part in _outermost(node.value)):
                candidate.report.add("narrow_accumulator", f"{sorted(mine)[0]} is narrowed while it accumulates; "
                                     "half-precision inputs accumulate in float32.", node.lineno)
        elif isinstance(node, ast.Call) and (_is_dot(candidate, node) and len(node.args) > 6
                                             and _names_narrow(candidate, node.args[6])):
            candidate.report.add("narrow_accumulator", "This product accumulates in half precision.", node.lineno)
        elif isinstance(node, ast.Call) and any(
                _narrows(candidate, part) for value in _reduced(candidate, node) for part in _outermost(value)):
            candidate.report.add("narrow_accumulator", "This sum adds values that were narrowed to half precision "
                                 "before; half-precision inputs accumulate in float32.", node.lineno)


def _outermost(value: ast.expr) -> Iterator[ast.expr]:
    """An expression and the operands of its outermost arithmetic."""
    yield value
    if isinstance(value, ast.BinOp):
        yield from _outermost(value.left)
        yield from _outermost(value.right)


def _narrows(candidate: Candidate, node: ast.expr) -> bool:
    """``value.to(tl.float16)``, ``tl.cast(value, tl.bfloat16)`` and the like."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("to", "cast")):
        return False
    return any(_names_narrow(candidate, value) for value in [*node.args, *(k.value for k in node.keywords)])


def _names_narrow(candidate: Candidate, node: ast.expr) -> bool:
    path = candidate.found.dotted(node) or ""
    root, _, last = path.rpartition(".")
    return root in (TL, GL) and (last in _NARROW or last.startswith("float8"))


def _reduced(candidate: Candidate, node: ast.Call) -> list[ast.expr]:
    """What a reduction adds up: its first argument, or the object it is a method of."""
    if not (isinstance(node.func, ast.Attribute) and node.func.attr in ("sum", "cumsum")):
        return []
    return node.args[:1] if candidate.found.dotted(node.func) is not None else [node.func.value]


def _is_dot(candidate: Candidate, node: ast.Call) -> bool:
    return candidate.found.dotted(node.func) in (f"{TL}.dot", f"{GL}.dot")


def _flag(candidate: Candidate, rule: str, code: str, text: str, line: int) -> None:
    if rule in candidate.prohibited:
        candidate.report.add("prohibited", f"{text} The goal prohibits {rule}.", line)
    else:
        candidate.report.add(code, text, line)


def _is_import(node: ast.AST) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom)
