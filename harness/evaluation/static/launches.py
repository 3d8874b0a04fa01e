"""Launches: which kernel functions `run` reaches, with which options, how many of them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from harness.evaluation.source.steps import walk
from harness.evaluation.static.candidate import Candidate
from harness.evaluation.static.launch_form import check_launch_form


def check_launches(candidate: Candidate) -> None:
    """Report unreachable kernels, unused outputs, launch options beyond the list and, if prohibited, split kernels."""
    run = candidate.found.run
    if run is None:
        return
    reached = _reachable(candidate)
    if not any(name in candidate.found.kernels for name in reached):
        candidate.report.add("no_kernel", "`run` uses no kernel function of this file. Write one and launch it.",
                             run.lineno)
    for name, function in candidate.found.kernels.items():
        if name not in reached:
            candidate.report.add("kernel_unused", f"The kernel function {name} is never used by `run`.",
                                 function.lineno)
    used = {node.id for node in walk(run) if isinstance(node, ast.Name)}
    for argument in candidate.spec.outputs:
        if argument.name not in used:
            candidate.report.add("output_unused", f"`run` never uses the output `{argument.name}`.", run.lineno)
    _check_dead_branches(candidate)
    check_launch_form(candidate)
    if "split kernels" in candidate.prohibited and launches_on_a_path(candidate, run.body) > 1:
        candidate.report.add("prohibited", "The goal prohibits split kernels, and one path through `run` launches more "
                             "than one. Fuse them.", run.lineno)


def launch_calls(candidate: Candidate, root: ast.AST) -> Iterator[ast.Call]:
    """``kernel[grid](...)`` for Triton, ``kernel(...)`` for numba."""
    for node in walk(root):
        if isinstance(node, ast.Call):
            function = node.func.value if isinstance(node.func, ast.Subscript) else node.func
            if isinstance(function, ast.Name) and function.id in candidate.found.kernels:
                yield node


def launches_on_a_path(candidate: Candidate, body: Sequence[ast.stmt]) -> int:
    """The largest number of launches on one path; a loop around a launch counts as two."""
    through, ended = _most_launches(candidate, body)
    return max(ended, through or 0)


def _most_launches(candidate: Candidate, body: Sequence[ast.stmt]) -> tuple[int | None, int]:
    """The most launches on a path that runs through ``body`` (``None``: none does), and on one that ends inside.

    Paths are bounded, not listed: a row of conditions doubles their number at each of them.
    """
    total, ended = 0, 0
    for statement in body:
        if isinstance(statement, ast.If):
            total += sum(1 for _ in launch_calls(candidate, statement.test))
            branches = [_most_launches(candidate, branch) for branch in (statement.body, statement.orelse)]
            ended = max(ended, *(total + inside for _, inside in branches))
            onward = [through for through, _ in branches if through is not None]
            if not onward:
                return None, ended
            total += max(onward)
            continue
        here = sum(1 for _ in launch_calls(candidate, statement))
        total += 2 * here if isinstance(statement, ast.For | ast.While) else here
        if isinstance(statement, ast.Return | ast.Raise):
            return None, max(ended, total)
    return total, ended


def _reachable(candidate: Candidate) -> set[str]:
    functions = {**candidate.found.hosts, **candidate.found.kernels}
    reached, todo = set(), ["run"]
    while todo:
        name = todo.pop()
        if name in reached or name not in functions:
            continue
        reached.add(name)
        nodes: Iterable[ast.AST] = (node for statement in functions[name].body for node in walk(statement))
        todo.extend(node.id for node in nodes if isinstance(node, ast.Name))
    return reached


def _check_dead_branches(candidate: Candidate) -> None:
    for _, node, _ in candidate.scoped():
        if not isinstance(node, ast.If | ast.While | ast.IfExp):
            continue
        if isinstance(node.test, ast.Constant) and not node.test.value:
            candidate.report.add("dead_branch", "This branch never runs. Remove it, so that a reviewer reads only what "
                                 "is used.", node.lineno)

