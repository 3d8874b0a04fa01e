"""Which kinds of syntax may stand in host code and in kernel bodies."""

from __future__ import annotations

import ast

from harness.domain.vocabulary import Backend
from harness.evaluation.static.candidate import Candidate

_ANYWHERE = (
    ast.Assign, ast.AugAssign, ast.AnnAssign, ast.If, ast.For, ast.While, ast.Return, ast.Expr, ast.Pass, ast.Assert,
    ast.Break, ast.Continue, ast.BoolOp, ast.NamedExpr, ast.BinOp, ast.UnaryOp, ast.IfExp, ast.ListComp,
    ast.GeneratorExp, ast.Compare, ast.Call, ast.FormattedValue, ast.JoinedStr, ast.Constant, ast.Attribute,
    ast.Subscript, ast.Starred, ast.Name, ast.List, ast.Tuple, ast.Slice, ast.keyword, ast.comprehension,
    ast.arguments, ast.arg, ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop)
_HOST = (ast.Raise, ast.FunctionDef, ast.Lambda, ast.Dict, ast.Set, ast.DictComp, ast.SetComp, ast.Delete)
_NUMBA_KERNEL = (ast.Raise,)
_PARTS = ast.alias | ast.withitem | ast.ExceptHandler | ast.match_case | ast.pattern  # reported with their statement
_CODES: dict[type[ast.AST], tuple[str, str]] = {
    ast.Try: ("exception_handling", "Exceptions may not be caught: a fallback would hide a failing "
              "kernel. Remove try."),
    ast.TryStar: ("exception_handling", "Exceptions may not be caught. Remove try."),
    ast.With: ("syntax_not_allowed", "A with block changes global state or opens resources. Remove it."),
    ast.Import: ("nested_import", "Imports stand at the top of the file. Move it there."),
    ast.ImportFrom: ("nested_import", "Imports stand at the top of the file. Move it there."),
    ast.Global: ("global_state", "`global` keeps state between calls. Pass values as arguments."),
    ast.Nonlocal: ("global_state", "`nonlocal` keeps state between calls. Pass values as arguments."),
    ast.Yield: ("kept_state", "A generator keeps state between calls. Return values instead."),
    ast.YieldFrom: ("kept_state", "A generator keeps state between calls. Return values instead."),
}


def check_syntax(candidate: Candidate) -> None:
    """Report every node of a kind that its context does not allow."""
    numba = candidate.found.backend is Backend.NUMBA
    host = _ANYWHERE + _HOST
    kernel = _ANYWHERE + (_NUMBA_KERNEL if numba else ())
    for context, node, _ in candidate.scoped():
        line = getattr(node, "lineno", None)
        if isinstance(node, ast.MatMult):
            owner = candidate.parent(node)
            candidate.report.add("library_compute", "`@` is a library matrix product. Write the loop, or tl.dot, in a "
                                 "kernel function.", getattr(owner, "lineno", None))
        elif isinstance(node, host if context != "kernel" else kernel):
            _check_nested(candidate, node)
        elif type(node) in _CODES:
            candidate.report.add(*_CODES[type(node)], line)
        elif not isinstance(node, ast.Import | ast.ImportFrom | ast.mod | _PARTS):
            where = "a kernel body" if context == "kernel" else "host code"
            candidate.report.add("syntax_not_allowed", f"{type(node).__name__} is not part of what {where} may use. "
                                 "Write it with plain statements.", line)


def _check_nested(candidate: Candidate, node: ast.AST) -> None:
    if isinstance(node, ast.FunctionDef) and node.decorator_list and candidate.parent(node) is not candidate.found.tree:
        candidate.report.add("decorator_not_allowed", f"The nested function {node.name} wears a decorator. Kernel "
                             "functions stand at module level.", node.lineno)
    elif isinstance(node, ast.Delete) and any(not isinstance(target, ast.Name) for target in node.targets):
        candidate.report.add("kept_state", "`del` may only remove local names.", node.lineno)
