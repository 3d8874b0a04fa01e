"""Importing a candidate from its text and wording its failures; used inside candidate processes only."""

from __future__ import annotations

import linecache
import sys
import types
from collections.abc import Callable
from typing import Any

from harness.backends.candidate_builtins import candidate_builtins
from harness.domain.vocabulary import Backend

FILENAME = "candidate.py"
MODULE = "candidate"
MESSAGE_SENT, TEXT_SENT = 1000, 2000
"""Characters of an exception's message, and of a whole answer about a failure, that are sent to the judge."""


def import_candidate(source: str) -> types.ModuleType:
    """Execute ``source`` as module ``candidate`` with the builtins of candidates; its tracebacks show its own lines.

    Raises whatever the source raises.
    """
    linecache.cache[FILENAME] = (len(source), None, source.splitlines(keepends=True), FILENAME)
    module = types.ModuleType(MODULE)
    module.__file__ = FILENAME
    sys.modules[MODULE] = module
    module.__dict__["__builtins__"] = candidate_builtins(Backend.NUMBA)
    # Not under the future statements of this file: what is judged is what everybody else imports.
    exec(compile(source, FILENAME, "exec", dont_inherit=True), module.__dict__)
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


def message_of(error: BaseException, kept: int = MESSAGE_SENT) -> str:
    """The first ``kept`` characters of an exception's own text. The text is the candidate's: making it may fail (lists
    nested without end, integers of thousands of digits), and then the exception is known by its type alone."""
    try:
        return str(error)[:kept]
    except Exception as failed:  # noqa: BLE001 - whatever it is, the exception itself must be told
        return f"its message cannot be shown ({type(failed).__name__})"


def fault(outcome: str, code: str, text: str, line: int | None) -> dict[str, Any]:
    """The answer for a failure."""
    return {"fault": {"outcome": outcome, "code": code, "text": text[:TEXT_SENT], "line": line}}


def general_fault(error: BaseException) -> dict[str, Any]:
    """The answer for an exception that no backend knows better."""
    line, said = candidate_line(error), message_of(error)
    if isinstance(error, MemoryError):
        text = f"The candidate asked for more memory than it may use ({said or 'MemoryError'}). Use less scratch."
        return fault("over_limit", "memory_limit", text, line)
    if isinstance(error, SyntaxError):
        reason = str(error.msg)[:MESSAGE_SENT]
        return fault("compile_error", "syntax_error", f"The source does not parse: {reason}.", line)
    if isinstance(error, SystemExit | KeyboardInterrupt):
        text = "The candidate tried to end its process. Return from run() instead."
        return fault("runtime_error", "early_exit", text, line)
    return fault("runtime_error", "exception", f"{type(error).__name__}: {said}", line)
