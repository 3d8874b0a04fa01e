"""Triton loads and stores of whole blocks without a mask."""

from __future__ import annotations

import ast

from harness.domain.vocabulary import Backend
from harness.evaluation.static.candidate import Candidate

_SPREADS = ("arange",)
_BOUNDED = ("make_block_ptr", "make_tensor_descriptor", "advance")


def check_masks(candidate: Candidate) -> None:
    """Ask for a look at every `tl.load` and `tl.store` through a block of pointers that has no mask."""
    if candidate.found.backend is not Backend.TRITON:
        return
    for kernel in candidate.found.kernels.values():
        spread = _spread_names(kernel)
        for node in ast.walk(kernel):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            path = candidate.found.dotted(node.func)
            if path not in ("triton.language.load", "triton.language.store") or not node.args:
                continue
            positional = 2 if path.endswith("load") else 3  # load(pointer, mask), store(pointer, value, mask)
            masked = len(node.args) >= positional or any(
                keyword.arg in ("mask", "boundary_check", None) for keyword in node.keywords)
            if not masked and _is_spread(node.args[0], spread):
                what = "reads" if path.endswith("load") else "writes"
                candidate.report.add("mask_missing", f"This {path.rpartition('.')[2]} {what} a whole block without a "
                                     "mask: sizes that the block does not divide run past the end.", node.lineno)


def _spread_names(kernel: ast.FunctionDef) -> set[str]:
    """Names whose value varies over a block: derived from `tl.arange`."""
    names: set[str] = set()
    while True:
        before = len(names)
        for node in ast.walk(kernel):
            if isinstance(node, ast.Assign | ast.AugAssign) and _is_spread(node.value, names):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names |= {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
        if len(names) == before:
            return names


def _is_spread(node: ast.expr, names: set[str]) -> bool:
    """Whether an expression depends on the lanes of a block; reductions and descriptors do not count as such."""
    if isinstance(node, ast.Call):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if called in _SPREADS:
            return True
        if called in _BOUNDED or called in ("sum", "max", "min", "argmax", "argmin", "program_id", "load"):
            return False
    if isinstance(node, ast.Name):
        return node.id in names
    children = [child.value if isinstance(child, ast.keyword) else child for child in ast.iter_child_nodes(node)]
    return any(_is_spread(child, names) for child in children if isinstance(child, ast.expr))
