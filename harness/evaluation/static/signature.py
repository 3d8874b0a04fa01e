"""`run`: present, plain, with the operator's signature."""

from __future__ import annotations

import ast

from harness.evaluation.source.steps import walk
from harness.evaluation.static.candidate import Candidate


def check_signature(candidate: Candidate) -> None:
    """Report a missing `run`, or one that cannot be called as the operator declares; defaults are literals."""
    run, wanted = candidate.found.run, candidate.spec.signature
    if run is None:
        line = next((node.lineno for node in walk(candidate.found.tree)
                     if isinstance(node, ast.AsyncFunctionDef | ast.ClassDef) and node.name == "run"), None)
        candidate.report.add("run_missing", f"There is no plain function `run` at module level. Define {wanted}.", line)
    elif not _fits(run.args, candidate):
        candidate.report.add("run_signature", f"The signature is run({ast.unparse(run.args)}); {candidate.spec.name} "
                             f"needs {wanted}. The interface may not change.", run.lineno)
    elif "run" in candidate.found.kernels:
        candidate.report.add("run_signature", "`run` must be host code, not a kernel function.", run.lineno)
    for node in walk(candidate.found.tree):
        if isinstance(node, ast.arguments):
            _check_defaults(candidate, node)
    if run is not None:
        _check_returns(candidate, run)


def _fits(arguments: ast.arguments, candidate: Candidate) -> bool:
    spec = candidate.spec
    positional = [argument.arg for argument in [*arguments.posonlyargs, *arguments.args]]
    named = [argument.arg for argument in arguments.kwonlyargs]
    return (positional == [argument.name for argument in spec.arguments]
            and sorted(named) == sorted(attribute.name for attribute in spec.attributes)
            and arguments.vararg is None and arguments.kwarg is None and not arguments.defaults)


def _check_defaults(candidate: Candidate, arguments: ast.arguments) -> None:
    for default in [*arguments.defaults, *(value for value in arguments.kw_defaults if value is not None)]:
        if any(not isinstance(part, ast.Constant | ast.UnaryOp | ast.USub | ast.Tuple | ast.Load)
               for part in walk(default)):
            candidate.report.add("default_argument", "A default value is not a literal: it would be shared by all "
                                 "calls. Use a literal, or create the value inside the function.", default.lineno)


def _check_returns(candidate: Candidate, run: ast.FunctionDef) -> None:
    todo: list[ast.AST] = [*run.body]
    while todo:
        node = todo.pop()
        if not isinstance(node, ast.FunctionDef | ast.Lambda):
            todo.extend(ast.iter_child_nodes(node))
        if isinstance(node, ast.Return) and node.value is not None and not (
                isinstance(node.value, ast.Constant) and node.value.value is None):
            candidate.report.add("return_value", "`run` returns a value. Results go into the output arguments and "
                                 "`run` returns nothing; the judge refuses a returned value.", node.lineno)
