"""The compiler's own word, independent of our reading: which names each compiled code object can load or store."""

from __future__ import annotations

import dis
from collections.abc import Iterator
from types import CodeType

from harness.evaluation.source.agreement import disagreements, line_of
from harness.evaluation.static.allowed import HOST_BUILTINS
from harness.evaluation.static.candidate import Candidate

_OF_OBJECTS = ("LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR", "DELETE_ATTR")
_IMPORTS = ("IMPORT_NAME", "IMPORT_FROM")
_MADE_BY_PYTHON = frozenset({"__annotations__", "__doc__"})


def check_compiled(candidate: Candidate) -> None:
    """Report names whose scope the compiler sees otherwise, and names of the compiled file that lead out of it."""
    report, tree = candidate.report, candidate.found.tree
    for name in sorted(disagreements(tree)):
        report.add("scope_unclear", f"Python resolves {name} in another scope than a reader of this file would. Give "
                                    "every variable a name of its own.", line_of(tree, name))
    known = (set(candidate.found.imports) | set(candidate.found.bound_lines) | HOST_BUILTINS
             | candidate.allowed.kernel_builtins | _MADE_BY_PYTHON)
    named = {finding.reason.line for finding in report.findings()}
    for operation, name, line in _names(compile(tree, "candidate.py", "exec", dont_inherit=True)):
        if line in named or operation in _IMPORTS:
            continue
        if operation in _OF_OBJECTS and name.startswith("_"):
            report.add("private_name", f"`.{name}` reaches into internals. Use the public interface.", line)
        elif operation not in _OF_OBJECTS and name not in known:
            report.add("scope_unclear", f"The compiled file uses {name}, which it neither defines nor may take from "
                                        "Python. Define it, or give it another name.", line)


def _names(module: CodeType) -> Iterator[tuple[str, str, int | None]]:
    """Operation, name and line of every instruction that goes by a name, in all code objects of the file."""
    todo = [module]
    while todo:
        code = todo.pop()
        todo.extend(constant for constant in code.co_consts if isinstance(constant, CodeType))
        for instruction in dis.get_instructions(code):
            if instruction.opcode in dis.hasname:
                line = instruction.positions.lineno if instruction.positions else None
                yield instruction.opname, str(instruction.argval), line
