"""Imports a candidate's text as a module, without a file, and words what goes wrong there."""

from __future__ import annotations

import linecache
import sys
import traceback
from types import ModuleType
from typing import Any

from harness.backends.candidate_builtins import candidate_builtins
from harness.backends.candidate_module import message_of
from harness.backends.triton.recorder.session import CANDIDATE_FILE
from harness.domain.vocabulary import Backend

MODULE = "candidate"


class _Loader:
    """Lets ``inspect`` find the source of a module that has no file."""

    def __init__(self, source: str) -> None:
        self._source = source

    def get_source(self, name: str) -> str:
        """The candidate's text."""
        return self._source


def import_candidate(source: str) -> ModuleType:
    """Execute ``source`` as module ``candidate`` with the builtins of candidates; whatever it raises passes through."""
    module = ModuleType(MODULE)
    module.__file__ = CANDIDATE_FILE
    module.__loader__ = _Loader(source)  # type: ignore[assignment]
    linecache.cache[CANDIDATE_FILE] = (len(source), None, source.splitlines(keepends=True), CANDIDATE_FILE)
    sys.modules[MODULE] = module
    module.__dict__["__builtins__"] = candidate_builtins(Backend.TRITON)
    exec(compile(source, CANDIDATE_FILE, "exec", dont_inherit=True), module.__dict__)
    return module


def fault(outcome: str, code: str, text: str, line: int | None = None) -> dict[str, Any]:
    """A failure as the answer document of a child."""
    return {"fault": {"outcome": outcome, "code": code, "text": text[:2000], "line": line}}


def missing_run(module: ModuleType) -> dict[str, Any] | None:
    """A fault when the module has no function ``run``."""
    if callable(getattr(module, "run", None)):
        return None
    return fault("policy_violation", "run_missing", "The file defines no function run.")


def failure(error: BaseException, doing: str) -> dict[str, Any]:
    """An exception of the candidate as a fault; ``doing`` begins the sentence ("The import", "run()")."""
    line = next(
        (
            frame.lineno
            for frame in reversed(traceback.extract_tb(error.__traceback__))
            if frame.filename == CANDIDATE_FILE
        ),
        None,
    )
    name, message = type(error).__name__, message_of(error).strip() or "no message"
    root = type(error).__module__.partition(".")[0]
    if name == "OutOfResources":
        text = f"{doing} needs more than the device has: {message}"
        return fault("resource_infeasible", "out_of_resources", text, line)
    if name == "NotHere":
        text = f"{doing} uses what Triton's interpreter cannot do: {message}. It needs a GPU host to be judged."
        return fault("unsupported_here", "interpreter_gap", text, line)
    if name == "ReturnsValue":
        return fault("policy_violation", "returns_value", message)
    if isinstance(error, MemoryError):
        return fault("runtime_error", "memory_limit", f"{doing} ran out of memory.", line)
    if name == "InterpreterError":
        inner = error.__cause__ or error
        text = f"{doing} raises {type(inner).__name__} in a kernel function: {message_of(inner)}"
        return fault("runtime_error", "raises", text, line)
    if message.startswith("PassManager::run failed"):
        text = f"{doing} does not compile: one of the compiler's passes gave up on a kernel function ({message})."
        return fault("compile_error", "triton_compile", text, line)
    if root == "triton" or name in ("PTXASError", "CompilationError", "UnsupportedLanguageConstruct"):
        inner = error
        while inner.__cause__ is not None:
            inner = inner.__cause__
        detail = message if inner is error else f"{message}\n{type(inner).__name__}: {message_of(inner)}"
        node = getattr(error, "node", None)
        return fault(
            "compile_error", "triton_compile", f"{doing} does not compile: {detail}", _kernel_line(error, node) or line
        )
    if isinstance(error, SystemExit | KeyboardInterrupt):
        return fault("runtime_error", "exits", f"{doing} ends the process ({name}).", line)
    return fault("runtime_error", "raises", f"{doing} raises {name}: {message}", line)


def _kernel_line(error: BaseException, node: Any) -> int | None:
    """The line in the file of a compiler error, whose node counts from the start of the kernel function."""
    source = getattr(error, "src", None)
    if node is None or not isinstance(source, str):
        return None
    whole = "".join(linecache.getlines(CANDIDATE_FILE))
    start = whole.find(source)
    return None if start < 0 else whole[:start].count("\n") + node.lineno
