"""Statements of a `prange` loop that one iteration alone reaches: those below ``if i == 0``, behind
``if r % parts != part: continue``, or between two bounds of this iteration."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from harness.evaluation.source.steps import step
from harness.evaluation.static.candidate import Candidate

_UPWARDS, _DOWNWARDS = (ast.Lt, ast.LtE), (ast.Gt, ast.GtE)
Differs = Callable[[ast.AST], bool]
"""Whether an expression's value depends on the iteration."""


def alone(candidate: Candidate, differs: Differs, node: ast.AST, top: ast.AST) -> bool:
    """Whether ``node``, somewhere below ``top``, runs in one iteration alone, as far as conditions say so. Bounds that
    overlap, or remainders that two iterations share, no text shows."""
    return any(_one_iteration(differs, test, holds) for test, holds in _conditions(candidate, node, top))


def _conditions(candidate: Candidate, node: ast.AST, top: ast.AST) -> Iterator[tuple[ast.expr, bool]]:
    """Tests that hold (or do not) wherever ``node`` runs: those of the branches that it is in, and of branches before
    it that go on with the next turn."""
    below, above = node, candidate.parent(node)
    while above is not None:
        step()
        if isinstance(above, ast.If) and below in above.body:
            yield above.test, True
        body = getattr(above, "body", None)
        if isinstance(body, list) and below in body:
            for earlier in body[: body.index(below)]:
                if isinstance(earlier, ast.If) and isinstance(earlier.body[-1], ast.Continue):
                    yield earlier.test, False
        if above is top:
            return
        below, above = above, candidate.parent(above)


def _one_iteration(differs: Differs, test: ast.expr, holds: bool) -> bool:
    """Whether ``test``, which ``holds`` or does not, singles an iteration out: something equals what differs, or lies
    between two things that differ."""
    whole = ast.And if holds else ast.Or
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, whole) else [test]
    bounds: set[tuple[str, bool]] = set()
    for part in parts:
        if not isinstance(part, ast.Compare) or (len(part.ops) > 1 and not holds):
            continue
        sides = [part.left, *part.comparators]
        for left, operator, right in zip(sides, part.ops, sides[1:], strict=False):
            if differs(left) == differs(right):
                continue
            if isinstance(operator, ast.Eq if holds else ast.NotEq):
                return True
            if isinstance(operator, (*_UPWARDS, *_DOWNWARDS)):
                fixed, first = (right, False) if differs(left) else (left, True)
                bounds.add((ast.dump(fixed), isinstance(operator, _UPWARDS) == first))
    return any((fixed, not below) in bounds for fixed, below in bounds)
