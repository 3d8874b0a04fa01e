"""Triton loads, stores and atomics of whole blocks without a mask."""

from __future__ import annotations

import ast

from harness.domain.vocabulary import Backend
from harness.evaluation.source.steps import step, walk
from harness.evaluation.static.allow_triton import GL, TL
from harness.evaluation.static.candidate import Candidate

_SPREADS = ("arange",)
_BOUNDED = ("make_block_ptr", "make_tensor_descriptor", "advance")
_ARGUMENTS = {"load": 1, "store": 2, "atomic_cas": None}
"""Position of the mask; other atomics take it third like a store, a compare-and-swap takes none."""


def check_masks(candidate: Candidate) -> None:
    """Ask for a look at every access through a block of pointers that has no mask, and at block pointers without
    boundary checks."""
    if candidate.found.backend is not Backend.TRITON:
        return
    for kernel in candidate.found.kernels.values():
        spread, blocks = _spread_names(kernel), _block_pointers(kernel)
        for node in walk(kernel):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
                path = candidate.found.dotted(node.func) or ""
                root, _, name = path.rpartition(".")
                if root in (TL, GL) and (name in ("load", "store") or name.startswith("atomic_")):
                    _check_access(candidate, node, name, spread, blocks)


def _check_access(candidate: Candidate, node: ast.Call, name: str, spread: set[str], blocks: set[str]) -> None:
    what = "reads" if name == "load" else "writes"
    if isinstance(node.args[0], ast.Name) and node.args[0].id in blocks:
        if not any(keyword.arg in ("boundary_check", None) for keyword in node.keywords):
            candidate.report.add("mask_missing", f"This {name} {what} through a block pointer without boundary_check: "
                                 "sizes that the block does not divide run past the end.", node.lineno)
    elif not _masked(node, name) and _is_spread(node.args[0], spread):
        candidate.report.add("mask_missing", f"This {name} {what} a whole block without a mask: sizes that the block "
                             "does not divide run past the end.", node.lineno)


def _masked(node: ast.Call, name: str) -> bool:
    """Whether an access carries a mask that is not simply ``None`` or ``True``."""
    position = _ARGUMENTS.get(name, 2)
    values = [keyword.value for keyword in node.keywords if keyword.arg in ("mask", "boundary_check")]
    if any(keyword.arg is None for keyword in node.keywords):
        return True
    if position is not None and len(node.args) > position:
        values.append(node.args[position])
    return any(not (isinstance(value, ast.Constant) and value.value in (None, True)) for value in values)


def _block_pointers(kernel: ast.FunctionDef) -> set[str]:
    """Names bound to `make_block_ptr` or an advanced one."""
    names: set[str] = set()
    for node in walk(kernel):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            function = node.value.func
            if isinstance(function, ast.Attribute) and function.attr == "make_block_ptr":
                names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names


def _spread_names(kernel: ast.FunctionDef) -> set[str]:
    """Names whose value varies over a block: derived from `tl.arange`."""
    names: set[str] = set()
    while True:
        before = len(names)
        for node in walk(kernel):
            if isinstance(node, ast.Assign | ast.AugAssign) and _is_spread(node.value, names):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names |= {name.id for target in targets for name in walk(target) if isinstance(name, ast.Name)}
        if len(names) == before:
            return names


def _is_spread(node: ast.expr, names: set[str]) -> bool:
    """Whether an expression depends on the lanes of a block; reductions and descriptors do not count as such."""
    step()
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
