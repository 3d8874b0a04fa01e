"""A bound on the work that reading one source may cost: counted, so that the same source always ends the same way.

The analyses read hostile text. Many of them look at a file again until nothing changes, which honest kernels end after
a few passes; a text made for it would keep them busy for minutes. Every node that is looked at is a step.
"""

from __future__ import annotations

import ast
import functools
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from harness.domain.errors import HarnessError, SourceError
from harness.evaluation.source.syntax import children

MAX_STEPS = 2_000_000
"""Steps for all analyses of one source. The costliest kernel of the corpus needs less than a twentieth."""
KEPT = 128
"""Texts whose reading is kept; each is some tens of kilobytes."""
Result = TypeVar("Result")

_counted = threading.local()


@contextmanager
def bounded(limit: int = MAX_STEPS) -> Iterator[None]:
    """Count the steps of this thread inside the block; an inner block counts with the outer one.

    Raises:
        SourceError: ``source_too_complex``, from whichever analysis takes the first step beyond ``limit``.
    """
    if getattr(_counted, "left", None) is not None:
        yield
        return
    _counted.left = limit
    try:
        yield
    finally:
        _counted.left = None


def step(count: int = 1) -> None:
    """Take ``count`` steps.

    Raises:
        SourceError: ``source_too_complex``, beyond the bound of the block around it.
    """
    left = getattr(_counted, "left", None)
    if left is None:
        return
    _counted.left = left - count
    if left < count:
        raise SourceError("Reading this source takes more steps than are granted to one kernel: too many statements "
                          "depend on each other. Shorten the chains of assignments, or split the file's functions.",
                          code="source_too_complex")


def steps_left() -> int | None:
    """Steps that the block around still grants; ``None`` outside of one."""
    return getattr(_counted, "left", None)


@contextmanager
def analysed() -> Iterator[None]:
    """Turn every failure of reading a source into the source's own: what happens here follows from the text alone.

    Raises:
        SourceError: ``source_not_analysed`` instead of any exception that is no error of the harness.
    """
    try:
        yield
    except HarnessError:
        raise
    except Exception as error:
        raise SourceError(f"This source cannot be analysed: the checks end with {type(error).__name__} on it. Write "
                          "constants, options and conditions more plainly.", code="source_not_analysed") from error


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """``ast.walk``, every node a step."""
    todo = deque([node])
    while todo:
        node = todo.popleft()
        step()
        todo.extend(children(node))
        yield node


def remembered(reading: Callable[[str], Result]) -> Callable[[str], Result]:
    """``reading`` of a text, kept for the texts that came last: agents and engines ask about the same few sources again
    and again. An answer that is kept takes the steps again that finding it took, so that nothing depends on what was
    read before. Answers are shared and must not be changed; what ``reading`` raises is not kept."""
    @functools.lru_cache(maxsize=KEPT)
    def found(text: str) -> tuple[Result, int]:
        with bounded():
            before = steps_left() or 0
            answer = reading(text)
            return answer, before - (steps_left() or 0)

    @functools.wraps(reading)
    def again(text: str) -> Result:
        before = steps_left()
        answer, cost = found(text)
        if before is not None and steps_left() == before:  # it was kept: nothing was counted
            step(cost)
        return answer

    return again
