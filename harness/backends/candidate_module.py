"""Importing a candidate from its text and wording its failures; used inside candidate processes only."""

from __future__ import annotations

import linecache
import sys
import types
from collections.abc import Callable
from typing import Any

FILENAME = "candidate.py"
MODULE = "candidate"


def import_candidate(source: str) -> types.ModuleType:
    """Execute ``source`` as module ``candidate`` whose tracebacks show its own lines.

    Raises whatever the source raises.
    """
    linecache.cache[FILENAME] = (len(source), None, source.splitlines(keepends=True), FILENAME)
    module = types.ModuleType(MODULE)
    module.__file__ = FILENAME
    sys.modules[MODULE] = module
    exec(compile(source, FILENAME, "exec"), module.__dict__)
    return module


def entry(module: types.ModuleType) -> Callable[..., Any]:
    """The candidate's ``run``.

    Raises:
        AttributeError: it has none.
    """
    run = getattr(module, "run", None)
    if not callable(run):
        raise AttributeError("The candidate defines no function 'run'.")
    return run


def candidate_line(error: BaseException) -> int | None:
    """The last line of the candidate on the way to ``error``."""
    if isinstance(error, SyntaxError) and error.filename == FILENAME:
        return error.lineno
    line, step = None, error.__traceback__
    while step is not None:  # step by step: a recursion without end leaves millions of them
        if step.tb_frame.f_code.co_filename == FILENAME:
            line = step.tb_lineno
        step = step.tb_next
    return line


def fault(outcome: str, code: str, text: str, line: int | None) -> dict[str, Any]:
    """The answer for a failure."""
    return {"fault": {"outcome": outcome, "code": code, "text": text, "line": line}}


def general_fault(error: BaseException) -> dict[str, Any]:
    """The answer for an exception that no backend knows better."""
    line = candidate_line(error)
    if isinstance(error, MemoryError):
        text = f"The candidate asked for more memory than it may use ({error or 'MemoryError'}). Use less scratch."
        return fault("over_limit", "memory_limit", text, line)
    if isinstance(error, SyntaxError):
        return fault("compile_error", "syntax_error", f"The source does not parse: {error.msg}.", line)
    if isinstance(error, SystemExit | KeyboardInterrupt):
        text = "The candidate tried to end its process. Return from run() instead."
        return fault("runtime_error", "early_exit", text, line)
    return fault("runtime_error", "exception", f"{type(error).__name__}: {error}", line)
