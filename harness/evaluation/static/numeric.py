"""Numeric modes, narrow accumulators, atomics and inline assembly: shown to the reviewer, blocked where prohibited."""

from __future__ import annotations

import ast

from harness.domain.vocabulary import Backend
from harness.evaluation.source.accumulators import dot_out_dtypes, narrowest
from harness.evaluation.source.body import special_call
from harness.evaluation.static.candidate import Candidate

_MODES = {"fastmath", "input_precision", "allow_tf32", "max_num_imprecise_acc", "fp_downcast_rounding"}
_EXACT = {"ieee", "False", "0", "None"}
_CODES = {"atomics": "atomics", "inline assembly": "inline_assembly"}


def check_numeric(candidate: Candidate) -> None:
    """Report numeric modes in decorators and calls, and what narrows or reorders arithmetic."""
    for _, node, _ in candidate.scoped():
        if isinstance(node, ast.keyword) and node.arg in _MODES:
            value = ast.unparse(node.value).strip("'")
            if value not in _EXACT:
                _flag(candidate, "numeric modes", "numeric_mode", f"The numeric mode {node.arg}={value} trades "
                      "accuracy or special values for speed.", node.value.lineno)
        elif (what := special_call(node)) is not None and not _is_import(node):
            _flag(candidate, what, _CODES[what], f"{what.capitalize()} in use: `{ast.unparse(node)}`.",
                  node.lineno)  # type: ignore[attr-defined]
    if candidate.found.backend is Backend.TRITON:
        for kernel in candidate.found.kernels.values():
            bits = min([narrowest(kernel, Backend.TRITON) or 64, *dot_out_dtypes(kernel)])
            if bits < 32:
                candidate.report.add("narrow_accumulator", f"{kernel.name} accumulates in {bits} bits; half-precision "
                                     "inputs accumulate in float32.", kernel.lineno)


def _flag(candidate: Candidate, rule: str, code: str, text: str, line: int) -> None:
    if rule in candidate.prohibited:
        candidate.report.add("prohibited", f"{text} The goal prohibits {rule}.", line)
    else:
        candidate.report.add(code, text, line)


def _is_import(node: ast.AST) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom)
