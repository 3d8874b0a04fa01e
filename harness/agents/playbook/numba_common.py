"""What the numba strategies of all operators share: decorators, numeric modes, threads."""

from __future__ import annotations

from harness.agents.playbook import edit
from harness.agents.protocol import AgentContext

RELAXED = 'fastmath={"reassoc", "contract", "arcp", "nsz"}'
"""Lets sums be reordered and products fused but keeps NaN and infinity: without reordering a reduction is a chain of
dependent additions that no compiler may vectorise."""
FULL = "fastmath=True"


def njit(*options: str) -> str:
    """The decorator's text, ``numba.njit`` or ``numba.njit(...)``."""
    return f"numba.njit({', '.join(options)})" if options else "numba.njit"


def relaxed(source: str, function: str) -> bool:
    """Whether the function may reorder its sums."""
    return "reassoc" in edit.decorator(source, function) or FULL in edit.decorator(source, function)


def parallel_options(source: str, function: str) -> tuple[str, ...]:
    """The decorator's options for threads: ``parallel=True`` beside the numeric mode the function already has."""
    mode = FULL if FULL in edit.decorator(source, function) else RELAXED if relaxed(source, function) else None
    return ("parallel=True",) if mode is None else ("parallel=True", mode)


def has(source: str, function: str, *names: str) -> bool:
    """Whether the function exists and takes at least these arguments: otherwise a template would not fit it."""
    return set(names) <= set(edit.argument_names(source, function))


def thread_gain(context: AgentContext) -> float:
    """What parallel rows can gain: nothing on one thread, at most the thread count less one."""
    return 0.7 * (context.threads - 1)


def thread_text(context: AgentContext) -> str:
    """The honest word on threads for this hardware."""
    if context.threads == 1:
        return ("Spread the outer loop over threads. The timed hardware has one thread, so no gain is predicted; the "
                "round only confirms it.")
    return f"Spread the outer loop over the {context.threads} timed threads."
