"""Names and attribute chains: everything a candidate can reach is on the allowlist or defined in the file."""

from __future__ import annotations

import ast
import builtins

from harness.evaluation.source.scopes import Scope
from harness.evaluation.static.allowed import HOST_BUILTINS
from harness.evaluation.static.candidate import Candidate, Context
from harness.evaluation.static.modules import special_path

_HOST_READS = frozenset({"item", "tolist", "cpu", "numpy", "any", "all", "equal"})
_NOT_COMPUTE = ("set_", "load", "save", "from", "seed", "manual_seed", "get_", "use_")
_TENSOR_COMPUTE = frozenset({
    "abs", "add", "add_", "addmm", "bmm", "clone", "copy_", "cumsum", "div", "div_", "dot", "double", "exp", "exp_",
    "float", "gather", "half", "index_select", "log", "masked_fill", "masked_fill_", "matmul", "mean", "mm", "mul",
    "mul_", "norm", "pow", "prod", "reciprocal", "relu", "rsqrt", "sigmoid", "softmax", "sort", "sqrt", "square", "std",
    "sub", "sub_", "sum", "tanh", "to", "topk", "triu", "type_as", "var", "bfloat16", "astype", "argmax", "argsort",
    "min", "max", "copy", "clip", "cumprod", "ravel", "take", "fill"})


def check_names(candidate: Candidate) -> None:
    """Report every name and attribute that leads out of the allowlist."""
    for context, node, scope in candidate.scoped():
        if isinstance(node, ast.Name):
            _check_name(candidate, context, node, scope)
        elif isinstance(node, ast.Attribute):
            _check_attribute(candidate, context, node, scope)


def _is_local(name: str, scope: Scope | None) -> bool:
    return scope is not None and scope.owner(name) is not None


def _check_name(candidate: Candidate, context: Context, node: ast.Name, scope: Scope | None) -> None:
    name, found, report = node.id, candidate.found, candidate.report
    if name.startswith("__"):
        report.add("private_name", f"{name} belongs to Python's internals. Remove it.", node.lineno)
    elif isinstance(node.ctx, ast.Store | ast.Del) or _is_local(name, scope):
        return  # see ``bindings``
    elif name in found.imports:
        if not isinstance(candidate.parent(node), ast.Attribute):
            _check_path(candidate, context, found.imports[name], (), node)
    elif name in found.constants and context == "host":
        if _names_kernel_code(candidate, name, set()):
            report.add("library_compute", f"`{name}` stands for a function of kernel bodies; host code may not "
                                          "compute. Use it in a kernel function.", node.lineno)
    elif name in found.bound_lines or name in _builtins_for(candidate, context):
        return
    elif name == "print":
        report.add("print_call", "Printing is not allowed: it costs time and writes into the evaluator's log. Remove "
                                 "it.", node.lineno)
    elif hasattr(builtins, name):
        report.add("forbidden_builtin", f"`{name}` is not allowed {_where(context)}. Use arithmetic, shapes and the "
                                        "functions of the allowlist.", node.lineno)
    else:
        report.add("undefined_name", f"{name} is not defined anywhere in this file.", node.lineno)


def _names_kernel_code(candidate: Candidate, name: str, seen: set[str]) -> bool:
    """Whether a module-level constant is, or is built from, a function that only kernel bodies may use."""
    value = candidate.found.constants.get(name)
    if value is None or name in seen:
        return False
    seen.add(name)
    for node in ast.walk(value):
        if isinstance(node, ast.Attribute | ast.Name):
            path = candidate.found.dotted(node)
            if path in candidate.allowed.kernel and path not in candidate.allowed.host:
                return True
            if isinstance(node, ast.Name) and _names_kernel_code(candidate, node.id, seen):
                return True
    return False


def _builtins_for(candidate: Candidate, context: Context) -> frozenset[str]:
    return candidate.allowed.kernel_builtins if context == "kernel" else HOST_BUILTINS


def _check_attribute(candidate: Candidate, context: Context, node: ast.Attribute, scope: Scope | None) -> None:
    if node.attr.startswith("_"):
        candidate.report.add("private_name", f"`.{node.attr}` reaches into internals. Use the public interface.",
                             node.lineno)
        return
    if isinstance(candidate.parent(node), ast.Attribute):
        return  # judged with the whole chain
    chain: list[str] = []
    root: ast.expr = node
    while isinstance(root, ast.Attribute):
        chain.append(root.attr)
        root = root.value
    chain.reverse()
    if any(part.startswith("_") for part in chain):
        return  # reported at that attribute
    if isinstance(root, ast.Name) and not _is_local(root.id, scope):
        if root.id in candidate.found.imports:
            _check_path(candidate, context, candidate.found.imports[root.id], tuple(chain), node)
            return
        if root.id in candidate.found.kernels:
            candidate.report.add("kernel_attribute", f"`{root.id}.{chain[0]}` looks inside a kernel function. Only "
                                 "launch it.", node.lineno)
            return
        if root.id in candidate.found.hosts:
            candidate.report.add("attribute_not_allowed", f"`{root.id}.{chain[0]}` looks inside a function. Only call "
                                 "it.", node.lineno)
            return
    _check_object_attributes(candidate, context, chain, node)


def _check_path(candidate: Candidate, context: Context, start: str, chain: tuple[str, ...], node: ast.expr) -> None:
    """A dotted path is allowed when one of its prefixes is, and the rest are allowed attributes of a value."""
    allowed = candidate.allowed
    paths = {"host": allowed.host, "kernel": allowed.kernel,
             "module": allowed.host | allowed.kernel | allowed.decorators}[context]
    path = start
    parts = list(chain)
    while path not in paths and parts:
        path = f"{path}.{parts.pop(0)}"
    if path in paths:
        _check_object_attributes(candidate, context, parts, node)
        return
    if path in allowed.modules:
        candidate.report.add("module_as_value", f"The module {path} is used as a value. Name the function you need.",
                             node.lineno)
        return
    code, text = _path_advice(candidate, context, path)
    candidate.report.add(code, text, node.lineno)


def _path_advice(candidate: Candidate, context: Context, path: str) -> tuple[str, str]:
    special = special_path(path)
    if special is not None:
        return special
    allowed = candidate.allowed
    if path in allowed.kernel:
        return "name_not_allowed", f"`{path}` belongs into a kernel function, not into host code."
    if path in allowed.host:
        return "name_not_allowed", f"`{path}` belongs into host code, not into a kernel function."
    if path.endswith((".device_print", ".static_print")):
        return "print_call", "Printing is not allowed: it costs time and floods the log. Remove it."
    root, _, last = path.partition(".")
    if path.startswith(("numba.extending", "numba.core", "numba.types", "numba.cuda", "numba.carray", "numba.cfunc")):
        return "name_not_allowed", f"`{path}` reaches below njit. Use plain njit code."
    if root in ("torch", "numpy") and last.isidentifier() and not last.startswith(_NOT_COMPUTE):
        if context == "kernel":
            return "library_compute", f"`{path}` is not on the allowlist of kernel bodies. Write the loop out."
        return "library_compute", f"`{path}` is library code: do what it does in a kernel function of your own."
    return "name_not_allowed", f"`{path}` is not on the allowlist {_where(context)} for {candidate.found.backend}."


def _check_object_attributes(candidate: Candidate, context: Context, chain: list[str], node: ast.expr) -> None:
    allowed = candidate.allowed
    attributes = {"host": allowed.host_attributes, "kernel": allowed.kernel_attributes,
                  "module": allowed.host_attributes | allowed.kernel_attributes}[context]
    report = candidate.report
    for name in chain:
        if name in attributes:
            continue
        if name == "data_ptr" or name in ("ctypes", "__array_interface__", "__cuda_array_interface__"):
            report.add("address", f"`.{name}` reads an address. Kernels take arrays; results must not depend on where "
                                  "they lie.", node.lineno)
        elif name in _HOST_READS and context == "host":
            report.add("host_read", f"`.{name}` reads values on the host, which waits for the device. Read them inside "
                                    "the kernel.", node.lineno)
        elif name in _TENSOR_COMPUTE and context == "host":
            report.add("library_compute", f"`.{name}` computes or copies outside your kernels. Do it in a kernel "
                                          "function.", node.lineno)
        else:
            report.add("attribute_not_allowed", f"`.{name}` is not on the allowlist {_where(context)} for "
                                                f"{candidate.found.backend}.", node.lineno)


def _where(context: Context) -> str:
    return {"host": "in host code", "kernel": "in kernel bodies", "module": "at module level"}[context]
