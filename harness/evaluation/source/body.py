"""What inside a changed kernel body lifts a change from medium to heavy."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from harness.domain.verdict import TierReason
from harness.domain.vocabulary import Backend, Tier
from harness.evaluation.source.accumulators import accumulators, dot_out_dtypes, mentions_wide, narrowest
from harness.evaluation.source.steps import walk

_NOT_LISTED: dict[type[ast.AST], str] = {
    ast.FunctionDef: "a nested function", ast.AsyncFunctionDef: "a nested function", ast.Lambda: "a lambda",
    ast.ClassDef: "a class", ast.Global: "a global statement", ast.Nonlocal: "a nonlocal statement",
    ast.Import: "an import", ast.ImportFrom: "an import", ast.Try: "exception handling", ast.With: "a with block",
    ast.AsyncWith: "a with block", ast.AsyncFor: "asynchronous code", ast.Await: "asynchronous code",
    ast.Yield: "a generator", ast.YieldFrom: "a generator", ast.Match: "a match statement", ast.Delete: "del",
}
_NUMERIC_MODES = ("input_precision", "allow_tf32", "max_num_imprecise_acc", "fast_math", "fp_downcast_rounding")
ASSEMBLY = ("inline_asm_elementwise",)
ATOMIC_PREFIX = "atomic_"


def body_reasons(old: ast.FunctionDef, new: ast.FunctionDef, backend: Backend) -> Iterator[tuple[Tier, TierReason]]:
    """Causes beyond "body changed": unlisted constructs, atomics, inline assembly, accumulators, numeric modes."""
    for node in _nodes(new):
        what = _NOT_LISTED.get(type(node))
        if what is not None:
            yield Tier.HEAVY, TierReason(getattr(node, "lineno", None), f"{what} in the body of {new.name}")
    yield from _special_calls(old, new)
    yield from _accumulator_reasons(old, new, backend)
    yield from _numeric_modes(old, new)


def special_call(node: ast.AST) -> str | None:
    """``inline assembly`` or ``atomics`` where ``node`` names such a function, by attribute or bare name."""
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    if name in ASSEMBLY:
        return "inline assembly"
    return "atomics" if name.startswith(ATOMIC_PREFIX) else None


def _nodes(function: ast.FunctionDef) -> Iterator[ast.AST]:
    for statement in function.body:
        yield from walk(statement)


def _special_calls(old: ast.FunctionDef, new: ast.FunctionDef) -> Iterator[tuple[Tier, TierReason]]:
    """Assembly and atomics: heavy unless exactly the same expressions were there before."""
    earlier = Counter(_special_texts(old))
    for text, what, line in _special(new):
        if earlier[text]:
            earlier[text] -= 1
        else:
            yield Tier.HEAVY, TierReason(line, f"{what} in the body of {new.name}")


def _special(function: ast.FunctionDef) -> Iterator[tuple[str, str, int]]:
    called = {}
    for node in _nodes(function):
        if isinstance(node, ast.Call) and special_call(node.func):
            called[id(node.func)] = ast.unparse(node)
    for node in _nodes(function):
        what = special_call(node)
        if what is not None:
            yield called.get(id(node), ast.unparse(node)), what, node.lineno  # type: ignore[attr-defined]


def _special_texts(function: ast.FunctionDef) -> list[str]:
    return [text for text, _, _ in _special(function)]


def _accumulator_reasons(old: ast.FunctionDef, new: ast.FunctionDef,
                         backend: Backend) -> Iterator[tuple[Tier, TierReason]]:
    before, after = narrowest(old, backend), narrowest(new, backend)
    if before is not None and after is not None and after < before:
        yield Tier.HEAVY, TierReason(new.lineno, f"an accumulator of {new.name} went from {before} to {after} bits")
    elif before is None and after is not None and after < 32:
        yield Tier.HEAVY, TierReason(new.lineno, f"{new.name} accumulates in {after} bits")
    elif backend is Backend.TRITON and before is not None and after is None and accumulators(new):
        yield Tier.HEAVY, TierReason(new.lineno, f"no accumulator of {new.name} names its width any more")
    if backend is Backend.TRITON and mentions_wide(old) and not mentions_wide(new):
        yield Tier.HEAVY, TierReason(new.lineno, f"{new.name} no longer converts to float32 or wider")
    if dot_out_dtypes(new) and min(dot_out_dtypes(new)) < min(dot_out_dtypes(old), default=32):
        yield Tier.HEAVY, TierReason(new.lineno, f"a dot product of {new.name} has a narrower result")


def _numeric_modes(old: ast.FunctionDef, new: ast.FunctionDef) -> Iterator[tuple[Tier, TierReason]]:
    earlier = {(node.arg, ast.unparse(node.value)) for node in _nodes(old) if isinstance(node, ast.keyword)}
    for node in _nodes(new):
        if isinstance(node, ast.keyword) and node.arg in _NUMERIC_MODES:
            value = ast.unparse(node.value)
            if (node.arg, value) not in earlier:
                yield Tier.MEDIUM, TierReason(node.value.lineno, f"numeric mode {node.arg}={value} in {new.name}")
