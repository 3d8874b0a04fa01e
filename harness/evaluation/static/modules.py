"""Module level: imports, constants, decorators, one definition per name."""

from __future__ import annotations

import ast

from harness.domain.vocabulary import Backend
from harness.evaluation.source.steps import walk
from harness.evaluation.source.structure import PARAMS, assigned_name, decorator_path, is_docstring, is_kernel
from harness.evaluation.static.candidate import Candidate

AUTOTUNE = ("triton.autotune keeps state and hides the choice, even with one configuration: put the winning values in "
            "PARAMS, or let the autotune agent search.")


def check_modules(candidate: Candidate) -> None:
    """Report every statement at module level that is not an allowed import, constant or function."""
    found, report = candidate.found, candidate.report
    for name, line in found.redefined():
        report.add("redefinition", f"{name} is defined a second time here. Give each function and constant one "
                                   "definition.", line)
    for position, statement in enumerate(found.tree.body):
        if isinstance(statement, ast.Import | ast.ImportFrom):
            _check_import(candidate, statement)
        elif isinstance(statement, ast.FunctionDef):
            _check_decorators(candidate, statement)
        elif position == 0 and is_docstring(statement):
            continue
        elif (constant := assigned_name(statement)) is not None:
            if constant != PARAMS:
                _check_constant(candidate, constant, statement.value)  # type: ignore[attr-defined]
        elif not _is_allocator_call(candidate, statement):
            report.add("module_statement", f"{_describe(statement)} at module level. Only imports, constants, PARAMS "
                                           "and functions stand there; move it into `run`.", statement.lineno)


def _check_import(candidate: Candidate, statement: ast.Import | ast.ImportFrom) -> None:
    allowed = candidate.allowed
    for alias in statement.names:
        if isinstance(statement, ast.Import):
            path, fine = alias.name, alias.name in allowed.modules
        else:
            path = f"{'.' * statement.level}{statement.module or ''}.{alias.name}"
            known = allowed.modules | allowed.host | allowed.kernel | allowed.decorators
            fine = path in known or path == "__future__.annotations"
        if not fine:
            _report_import(candidate, path, statement.lineno)


def _report_import(candidate: Candidate, path: str, line: int) -> None:
    special = special_path(path)
    if special is not None:
        candidate.report.add(special[0], special[1], line)
        return
    backend = candidate.found.backend
    names = "numba, numpy and math" if backend is Backend.NUMBA else (
        "torch, triton, triton.language, libdevice, gdc_wait, TensorDescriptor, gluon and math")
    candidate.report.add("import_not_allowed", f"`{path}` may not be imported. A {backend} kernel imports {names}.",
                         line)


def special_path(path: str) -> tuple[str, str] | None:
    """Code and sentence for well-known names that deserve their own advice."""
    if path.startswith("triton.autotune") or path.startswith("triton.runtime.autotuner") or path == "triton.Config":
        return "autotune", AUTOTUNE
    if path.startswith("numba.objmode") or path.endswith(".objmode"):
        return "object_mode", "objmode leaves compiled code. Write the loop in njit code."
    for prefix in ("torch.nn", "torch.ops", "torch.compile", "torch.jit", "torch.linalg", "torch.special",
                   "torch.fft", "numpy.linalg", "numpy.fft"):
        if path == prefix or path.startswith(prefix + "."):
            return "library_compute", f"`{path}` is library compute. Write it in a kernel function of your own."
    return None


def _check_decorators(candidate: Candidate, function: ast.FunctionDef) -> None:
    found, report = candidate.found, candidate.report
    kernel = is_kernel(found, function)
    for node in function.decorator_list:
        path = decorator_path(found, node) or ""
        if any(isinstance(part, ast.Constant) and isinstance(part.value, str) and "\n" in part.value
               for part in walk(node)):
            # Triton takes the first line that starts with `def` for the kernel, inside such a string too.
            report.add("decorator_option", f"A decorator of {function.name} contains a string of several lines. Write "
                                           "it on one line.", node.lineno)
        special = special_path(path)
        if special is not None:
            report.add(special[0], special[1], node.lineno)
        elif path not in candidate.allowed.decorators or not kernel:
            what = path or ast.unparse(node)[:60]
            report.add("decorator_not_allowed", f"The decorator `{what}` on {function.name} is not allowed. Kernel "
                       f"functions wear {' or '.join(sorted(candidate.allowed.decorators))}; `run` and host helpers "
                       "wear none.", node.lineno)
        elif path == "triton.heuristics":
            _check_heuristics(candidate, node)
        elif isinstance(node, ast.Call):
            _check_options(candidate, function, node)


def _check_options(candidate: Candidate, function: ast.FunctionDef, call: ast.Call) -> None:
    report, name = candidate.report, function.name
    if call.args:
        if candidate.found.backend is Backend.NUMBA:
            report.add("explicit_signature", f"{name} has an explicit signature. Leave it out: numba infers the types "
                                             "of every case, strided rows included.", call.lineno)
        else:
            report.add("decorator_option", f"The decorator of {name} takes no positional arguments here.", call.lineno)
    for keyword in call.keywords:
        if keyword.arg == "cache" and candidate.found.backend is Backend.NUMBA:
            report.add("numba_cache", f"cache=True on {name} keeps files between runs. Leave it out.", call.lineno)
        elif keyword.arg in ("forceobj", "looplift") or (
                keyword.arg == "nopython" and ast.unparse(keyword.value) != "True"):
            report.add("object_mode", f"{ast.unparse(keyword)} on {name} leaves compiled code. Leave it out.",
                       call.lineno)
        elif keyword.arg not in candidate.allowed.decorator_options:
            options = ", ".join(sorted(candidate.allowed.decorator_options))
            report.add("decorator_option", f"The option {keyword.arg or '**'} on {name} is not allowed. "
                                           f"Allowed are {options}.", call.lineno)
        elif any(not isinstance(part, _LITERAL) for part in walk(keyword.value)):
            report.add("decorator_option", f"The option {keyword.arg} on {name} is not a literal.", call.lineno)


_LITERAL = ast.Constant | ast.Set | ast.Tuple | ast.List | ast.Load


def _check_heuristics(candidate: Candidate, node: ast.expr) -> None:
    values = node.args[0] if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords else None
    if not isinstance(values, ast.Dict) or any(not isinstance(value, ast.Lambda) for value in values.values) or any(
            not isinstance(key, ast.Constant) for key in values.keys):
        candidate.report.add("decorator_option", "triton.heuristics takes one literal dict of lambdas on shapes.",
                             node.lineno)


def _check_constant(candidate: Candidate, name: str, value: ast.expr) -> None:
    """A constant is built from literals, other constants, allowed names and operators; the only calls are pure."""
    found = candidate.found
    if name.startswith("__"):
        candidate.report.add("private_name", f"{name} is a name that Python itself uses. Rename it.", value.lineno)
    for node in walk(value):
        if isinstance(node, ast.Call):
            path = found.dotted(node.func)
            builtin = isinstance(node.func, ast.Name) and node.func.id in ("float", "int", "tuple", "max", "min", "abs")
            if path not in candidate.allowed.calls_at_import and not builtin:
                candidate.report.add("module_state", f"{name} is made by a call at module level, which could keep "
                                     "state between calls of `run`. Make it inside `run`, or write a literal.",
                                     node.lineno)
        elif isinstance(node, ast.Lambda | ast.GeneratorExp | ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom):
            candidate.report.add("module_state", f"{name} is not a plain constant. Write a literal, or a function.",
                                 node.lineno)


def _is_allocator_call(candidate: Candidate, statement: ast.stmt) -> bool:
    return (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
            and candidate.found.dotted(statement.value.func) == "triton.set_allocator")


def _describe(statement: ast.stmt) -> str:
    words = {"If": "A condition", "For": "A loop", "While": "A loop", "Try": "Exception handling", "Expr": "A call",
             "ClassDef": "A class", "With": "A with block", "AugAssign": "An augmented assignment", "Delete": "A del",
             "AsyncFunctionDef": "An asynchronous function", "Assign": "An assignment to something other than one name"}
    return f"{words.get(type(statement).__name__, type(statement).__name__)} stands"
